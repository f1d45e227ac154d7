"""The free list: taking, giving back, and lending scratch pages."""

import numpy as np
import pytest

from eaglebench.errors import InvariantError
from eaglebench.kv.pages import PageAllocator


def make_allocator(num_pages: int = 8) -> PageAllocator:
    """A fresh pool."""
    return PageAllocator(num_pages)


def take(pages: PageAllocator, num: int) -> np.ndarray:
    """Allocate pages that are known to be there."""
    taken = pages.allocate(num)
    assert taken is not None
    return taken


def test_a_fresh_pool_hands_out_ascending_pages_from_one() -> None:
    """Page 0 is the dummy page and is never handed out."""
    pages = make_allocator()

    assert take(pages, 3).tolist() == [1, 2, 3]
    assert take(pages, 5).tolist() == [4, 5, 6, 7, 8]
    assert not pages.is_free(0)


def test_a_request_that_does_not_fit_changes_nothing() -> None:
    """Too few pages is None: no page moves and no call is counted."""
    pages = make_allocator()
    take(pages, 6)

    assert pages.allocate(3) is None
    assert pages.num_free == 2
    assert pages.num_alloc_calls == 1


def test_freed_pages_come_back_as_runs() -> None:
    """Freed pages are sorted in when the front of the list runs out."""
    pages = make_allocator()
    taken = take(pages, 8)
    pages.free(taken[[5, 1, 3]])
    pages.free(taken[[0, 2, 4]])

    assert take(pages, 6).tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("freed", "message"),
    [
        ([0], "outside"),
        ([-1], "outside"),
        ([9], "outside"),
        ([1, 1], "twice in one call"),
        ([2, 1, 2], "twice in one call"),
        ([1, 5], "double free"),
    ],
)
def test_a_wrong_free_is_refused_whole(freed: list[int], message: str) -> None:
    """The dummy page, unknown, free or repeated pages: an error, and nothing has changed."""
    pages = make_allocator()
    take(pages, 4)

    with pytest.raises(InvariantError, match=message):
        pages.free(np.array(freed, dtype=np.int32))
    assert sorted(pages.free_pages().tolist()) == [5, 6, 7, 8]
    assert not any(pages.is_free(page) for page in range(5))


def test_long_lists_are_cut_in_messages() -> None:
    """A message names a few pages, not a million."""
    pages = make_allocator(100)

    with pytest.raises(InvariantError, match=r"1, 2, 3, 4, 5, 6, 7, 8, \.\.\.$"):
        pages.free(np.arange(1, 50, dtype=np.int32))


def test_freeing_a_view_that_changes_later_frees_what_it_named() -> None:
    """A deferred merge of freed pages must not look at the caller's row (sglang#34067)."""
    pages = make_allocator()
    row = take(pages, 4).copy()
    pages.free(row[1:3])
    row[:] = 4

    assert sorted(pages.free_pages().tolist()) == [2, 3, 5, 6, 7, 8]
    assert take(pages, 6).tolist() == [2, 3, 5, 6, 7, 8]


def test_freeing_nothing_is_nothing() -> None:
    """An empty array is no change."""
    pages = make_allocator()
    pages.free(np.empty(0, dtype=np.int32))

    assert pages.num_free == 8


def test_impossible_sizes_are_bugs() -> None:
    """A pool without pages and a negative request are errors of the caller."""
    with pytest.raises(InvariantError, match="holds nothing"):
        make_allocator(0)
    with pytest.raises(InvariantError, match="can't allocate"):
        make_allocator().allocate(-1)


def test_handed_out_pages_are_read_only() -> None:
    """Nobody may write into the allocator's own list."""
    with pytest.raises(ValueError, match="read-only"):
        take(make_allocator(), 2)[0] = 5


def test_pages_hold_still_while_a_step_runs() -> None:
    """Taking or freeing inside is an error; doing nothing is not, whatever happened before."""
    pages = make_allocator()
    taken = take(pages, 2)
    with pages.unchanged():
        pass

    with pytest.raises(InvariantError, match="in the middle of a step"), pages.unchanged():
        pages.free(taken)
    with pytest.raises(InvariantError, match="in the middle of a step"), pages.unchanged():
        pages.allocate(1)


def test_a_million_pages_need_no_loop() -> None:
    """Shuffled frees of a large pool come back complete and sorted."""
    pages = make_allocator(1_000_000)
    taken = take(pages, 1_000_000)
    pages.free(np.random.default_rng(0).permutation(taken))

    assert take(pages, 1_000_000).tolist() == list(range(1, 1_000_001))


def test_the_audit_sees_a_list_that_lies() -> None:
    """A page that is handed out and still on the free list has two owners."""
    pages = make_allocator()
    pages.audit()
    before = pages._free_list
    take(pages, 2)
    pages.audit()
    pages._free_list = before

    with pytest.raises(InvariantError, match="I2"):
        pages.audit()
