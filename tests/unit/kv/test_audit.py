"""The audit must go red for every law, by name."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from eaglebench.errors import InvariantError
from eaglebench.kv.audit import OwnedView, audit
from eaglebench.kv.cache import CacheSetup
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import BigramKey
from eaglebench.kv.pages import PageAllocator
from eaglebench.kv.radix_cache import RadixCache
from eaglebench.kv.tables import BlockTable

GEOMETRY = PageGeometry(4)


class Books:
    """A pool of 8 pages, one of them in the tree and three of them held by request r."""

    def __init__(self) -> None:
        self.pages = PageAllocator(8)
        self.cache = RadixCache(CacheSetup(GEOMETRY, self.pages))
        self.table = BlockTable(GEOMETRY)
        taken = self.pages.allocate(4)
        assert taken is not None
        self.table.append(taken)
        self.tree_owned_slots, self.lock = self.cache.checkpoint(
            key=BigramKey(range(5)),
            table=self.table,
            tree_owned_slots=0,
            lock=self.cache.lock(self.cache.lookup(BigramKey([]), 0)),
        )

    def audit(
        self, changes: Mapping[str, int] | None = None, written: list[int] | None = None
    ) -> None:
        """Audit with some lengths changed."""
        lengths = {
            "tree_owned_slots": self.tree_owned_slots,
            "num_written": 10,
            "draft_valid_len": 10,
            "num_known_tokens": 11,
            **(changes or {}),
        }
        view = OwnedView(request_id="r", table=self.table, **lengths)
        writes = None if written is None else {"r": np.array(written, dtype=np.int64)}
        audit(self.pages, self.cache, GEOMETRY, [view], writes)


def test_sound_books_pass() -> None:
    """With and without writes of the step."""
    books = Books()
    books.audit()
    books.audit(written=[8, 9, 19])


def leak(books: Books) -> None:
    """Take a page and forget it."""
    books.pages.allocate(1)


def free_under_the_request(books: Books) -> None:
    """Free a page and leave the row pointing at it."""
    books.pages.free(books.table.pages[2:3])


def free_under_the_tree(books: Books) -> None:
    """Free a page of the tree."""
    books.pages.free(books.table.pages[:1])


def own_the_dummy(books: Books) -> None:
    """Point a row at page 0."""
    books.table.append(np.array([0], dtype=np.int32))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (leak, "page 5 has 0: nobody"),
        (free_under_the_request, "page 3 has 2: the free list, r"),
        (free_under_the_tree, "page 1 has 2: the free list, the tree"),
        (own_the_dummy, "page 0"),
    ],
)
def test_every_page_has_one_owner(damage: Callable[[Books], None], message: str) -> None:
    """L1 names the page and everybody who claims it."""
    books = Books()
    damage(books)

    with pytest.raises(InvariantError, match=f"L1: .*{message}"):
        books.audit()


@pytest.mark.parametrize(
    ("law", "changes"),
    [
        ("L3", {"num_written": 17}),
        ("L3", {"draft_valid_len": 11}),
        ("L3", {"num_written": 3, "draft_valid_len": 3}),
        ("L4", {"num_known_tokens": 10}),
        ("L4", {"num_known_tokens": 0}),
    ],
)
def test_lengths_are_in_order(law: str, changes: dict[str, int]) -> None:
    """L3 and L4 compare written, settled, held and known."""
    with pytest.raises(InvariantError, match=law):
        Books().audit(changes)


def test_no_tokens_and_no_slots_are_in_order() -> None:
    """A request that knows nothing yet claims nothing."""
    audit(
        PageAllocator(1),
        RadixCache(CacheSetup(GEOMETRY, PageAllocator(1))),
        GEOMETRY,
        [
            OwnedView(
                request_id="r",
                table=BlockTable(GEOMETRY),
                tree_owned_slots=0,
                num_written=0,
                draft_valid_len=0,
                num_known_tokens=0,
            )
        ],
    )


def test_a_borrowed_page_must_be_the_trees() -> None:
    """L2 finds a row that calls a page borrowed which the tree does not own."""
    books = Books()
    other = BlockTable(GEOMETRY)
    taken = books.pages.allocate(1)
    assert taken is not None
    other.append(taken)
    books.pages.free(taken)
    borrower = OwnedView(
        request_id="other",
        table=other,
        tree_owned_slots=4,
        num_written=4,
        draft_valid_len=4,
        num_known_tokens=9,
    )
    owner = OwnedView(
        request_id="r",
        table=books.table,
        tree_owned_slots=4,
        num_written=10,
        draft_valid_len=10,
        num_known_tokens=11,
    )

    with pytest.raises(InvariantError, match="L2: request other"):
        audit(books.pages, books.cache, GEOMETRY, [owner, borrower])


@pytest.mark.parametrize(
    ("slot", "message"),
    [
        (0, "request r wrote into page 0"),
        (4, "request r wrote into page 1, which it does not own"),
        (20, "request r wrote into page 5, which it does not own"),
        (-1, "request r wrote into page -1"),
    ],
)
def test_writes_stay_in_own_pages(slot: int, message: str) -> None:
    """L5 finds writes into the dummy page, the tree, the free list and nowhere."""
    with pytest.raises(InvariantError, match=f"L5: {message}"):
        Books().audit(written=[9, slot])


def test_an_unknown_writer_owns_nothing() -> None:
    """Slots written for a request that is not there are foreign."""
    books = Books()

    with pytest.raises(InvariantError, match="L5: request ghost"):
        audit(
            PageAllocator(8),
            RadixCache(CacheSetup(GEOMETRY, books.pages)),
            GEOMETRY,
            [],
            {"ghost": np.array([9], dtype=np.int64)},
        )
