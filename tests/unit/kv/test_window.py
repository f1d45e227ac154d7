"""Window pages and their residency in the tree."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eaglebench.errors import InvariantError
from eaglebench.kv.cache import CacheSetup, PrefixLock
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import BigramKey, PrefixKey, TokenKey
from eaglebench.kv.radix_cache import RadixCache
from eaglebench.kv.residency import WINDOW_USE, WindowResidency
from eaglebench.kv.tables import BlockTable
from eaglebench.kv.window import PagePairAllocator, slots_in_front
from eaglebench.records.knobs import EvictionPolicy

WINDOW = 5
"""Counts the current token: four live slots in front, SGLang's W = 4."""


@dataclass
class Hybrid:
    """A prefix cache over two pools, driven by hand."""

    page_size: int = 1
    window: int = WINDOW
    key: type[TokenKey | BigramKey] = BigramKey
    num_pages: int = 128
    num_windows: int = 64
    policy: EvictionPolicy = "lru"
    pages: PagePairAllocator = field(init=False)
    cache: RadixCache = field(init=False)

    def __post_init__(self) -> None:
        geometry = PageGeometry(self.page_size)
        self.pages = PagePairAllocator(geometry, self.num_pages, self.num_windows)
        self.cache = RadixCache(CacheSetup(geometry, self.pages, self.window, self.policy))

    @property
    def residency(self) -> WindowResidency:
        """The tree's windows."""
        assert self.cache.residency is not None
        return self.cache.residency

    def make_key(self, tokens: list[int]) -> PrefixKey:
        """The key of all slots that are settled when the last token has no slot yet."""
        return self.key(tokens)

    def insert(self, tokens: list[int]) -> int:
        """A request that computes all of its key anew; returns units the tree held before."""
        key = self.make_key(tokens).page_aligned(self.cache.geometry)
        before = self.cache.tree.match(key).num_pages * self.page_size
        taken = self.pages.allocate(self.cache.geometry.pages_for(key.num_units))
        assert taken is not None
        table = BlockTable(self.cache.geometry)
        table.append(taken)
        _, lock = self.cache.checkpoint(
            key=key, table=table, tree_owned_slots=0, lock=PrefixLock(None)
        )
        self.cache.unlock(lock)
        self.check()
        return before

    def match(self, tokens: list[int]) -> int:
        """Slots of the longest hit."""
        return self.cache.lookup(self.make_key(tokens), 10_000).num_slots

    def hit(self, tokens: list[int]) -> None:
        """A request that goes on from the longest hit and ends."""
        key = self.make_key(tokens)
        hit = self.cache.lookup(key, 10_000)
        table = BlockTable(self.cache.geometry)
        table.append(hit.pages)
        lock = self.cache.lock(hit)
        _, lock = self.cache.checkpoint(
            key=key, table=table, tree_owned_slots=hit.num_slots, lock=lock
        )
        self.cache.unlock(lock)

    def free(self) -> tuple[int, int]:
        """Free pages of both pools."""
        return self.pages.num_free, self.pages.window_pages.num_free

    def check(self) -> None:
        """Every law of pools, tree and windows; no page without an owner."""
        self.pages.audit()
        self.cache.audit()
        owned = len(self.cache.owned_pages())
        assert owned + self.pages.num_free == self.pages.num_pages


@pytest.mark.parametrize(
    ("key", "prefixes", "hits"),
    [(BigramKey, (0, 2, 0, 4), (0, 6)), (TokenKey, (0, 3, 0, 5), (0, 7))],
)
def test_the_ladder_of_sglang(
    key: type[TokenKey | BigramKey], prefixes: tuple[int, ...], hits: tuple[int, int]
) -> None:
    """The unit numbers of its sliding-window tree, for both kinds of keys."""
    hybrid = Hybrid(key=key)
    long = [1, 2, 3, 4, 5, 60, 70]
    inserted = [[1, 2, 3], [1, 2, 3, 4, 5, 6, 7], [10, 11, 12], long]
    assert tuple(hybrid.insert(tokens) for tokens in inserted) == prefixes

    units = key([10, 11, 12]).num_units
    before = hybrid.free()
    hybrid.cache.evict(1, 0)  # the leaf [10, 11, 12]
    assert hybrid.free() == (before[0] + units, before[1] + units)
    assert hybrid.match([10, 11, 12]) == 0
    before = hybrid.free()
    hybrid.cache.evict(0, 1)  # the oldest window is that of the first node, in the middle
    assert hybrid.free() == (before[0], before[1] + units)
    before = hybrid.free()
    hybrid.cache.evict(1, 2)  # the leaf [.., 6, 7]; its windows are enough
    assert hybrid.free() == (before[0] + 2, before[1] + 2)
    hybrid.check()
    assert (hybrid.match([1, 2, 3, 4, 5]), hybrid.match(long)) == hits


@pytest.mark.parametrize("page_size", [1, 2, 4])
@pytest.mark.parametrize("window", [1, 2, 3, 5, 8, 100])
@given(dead=st.sets(st.integers(0, 11)), num_pages=st.integers(0, 12))
def test_a_hit_ends_where_its_window_is_live(
    page_size: int, window: int, dead: set[int], num_pages: int
) -> None:
    """The slow version: try every length, look at every slot."""
    hybrid = Hybrid(page_size=page_size, window=window)
    pages = hybrid.pages.allocate(12)
    assert pages is not None
    hybrid.pages.release_window(pages[sorted(dead)])
    live = np.repeat(hybrid.pages.is_live(pages), page_size)

    def is_valid(end: int) -> bool:
        slots = end * page_size
        return bool(live[max(0, slots - slots_in_front(window)) : slots].all())

    expected = max(end for end in range(num_pages + 1) if is_valid(end))
    assert hybrid.residency.longest_hit(pages[:num_pages]) == expected


def test_a_tombstone_is_revived_by_who_recomputes_it() -> None:
    """The window page changes hands, the duplicate goes back, and the whole path hits again."""
    hybrid = Hybrid()
    tokens = list(range(20))
    hybrid.insert(tokens)
    hybrid.cache.evict(0, 64)
    hybrid.insert(tokens)
    assert hybrid.match(tokens) == 19
    hybrid.insert([*tokens[:8], 90, 91, 92, 93, 94, 95])
    hybrid.cache.evict(0, 1)
    before = hybrid.free()

    hybrid.insert(tokens)

    assert hybrid.free()[0] == before[0]
    assert hybrid.match(tokens) == 19
    assert hybrid.match([*tokens[:8], 90, 91, 92, 93, 94, 95]) == 13


def test_a_lock_pins_one_window_and_survives_splits() -> None:
    """A hundred slots locked, four windows pinned; a split in between changes nothing."""
    hybrid = Hybrid()
    tokens = list(range(30))
    hybrid.insert(tokens)
    lock = hybrid.cache.lock(hybrid.cache.lookup(hybrid.make_key(tokens), 10_000))
    assert hybrid.residency.num_protected == 4
    hybrid.insert([*tokens[:27], 90, 91, 92])  # cuts the locked node inside its window
    hybrid.cache.evict(0, 64)

    assert hybrid.match(tokens) == 29
    assert hybrid.residency.num_protected == 4
    hybrid.cache.unlock(lock)
    assert hybrid.residency.num_protected == 0
    hybrid.check()


def test_a_middle_node_loses_its_window_and_keeps_the_rest() -> None:
    """Full pages stay; a leaf without any window goes, and so do ancestors left without one."""
    hybrid = Hybrid()
    hybrid.insert(list(range(10)))
    hybrid.insert([*range(10), *range(50, 60)])
    full, _ = hybrid.free()

    hybrid.cache.evict(0, 1)
    assert hybrid.free()[0] == full
    assert hybrid.match(list(range(10))) == 0
    assert hybrid.match([*range(10), *range(50, 60)]) == 19
    hybrid.cache.evict(0, 64)

    assert hybrid.free() == (128, 64)


def test_hits_do_not_ratchet_to_zero() -> None:
    """A prompt sent again and again between evictions always comes back to its full hit."""
    hybrid = Hybrid()
    tokens = list(range(25))
    for round_number in range(6):
        hybrid.insert(tokens)
        assert hybrid.match(tokens) == 24
        hybrid.insert([900 + round_number, *range(100, 110)])
        hybrid.cache.evict(0, 12)
        hybrid.check()


def test_a_page_has_one_window_page() -> None:
    """Handing over needs a giver that has one and a taker that has none."""
    pages = PagePairAllocator(PageGeometry(4), 8, 4)
    first = pages.allocate(2)
    assert first is not None
    assert pages.allocate(3) is None
    with pytest.raises(InvariantError, match="can't hand its window page"):
        pages.hand_over(int(first[0]), int(first[1]))
    assert pages.release_window(first[1:]) == 1
    pages.hand_over(int(first[0]), int(first[1]))

    slots = pages.window_slots(np.array([first[0] * 4, first[1] * 4 + 3], dtype=np.int64))
    assert slots[0] == -1
    assert slots[1] % 4 == 3
    pages.audit()


def test_both_pools_hold_still_while_a_step_runs() -> None:
    """A release of window pages alone is a change too."""
    pages = PagePairAllocator(PageGeometry(1), 8, 8)
    taken = pages.allocate(2)
    assert taken is not None

    with pytest.raises(InvariantError, match="in the middle of a step"), pages.unchanged():
        pages.release_window(taken)


def test_what_is_locked_is_not_evicted() -> None:
    """And what was passed over goes once it is free."""
    hybrid = Hybrid()
    tokens = list(range(12))
    hybrid.insert(tokens)
    lock = hybrid.cache.lock(hybrid.cache.lookup(hybrid.make_key(tokens), 10_000))

    assert hybrid.cache.evict(0, 64) == 11 - 4
    hybrid.cache.unlock(lock)
    hybrid.check()

    hybrid.cache.evict(0, 64)
    assert hybrid.free() == (128, 64)


@pytest.mark.parametrize(("policy", "survivor"), [("lru", "hit"), ("fifo", "late"), ("lfu", "hit")])
def test_windows_go_in_the_order_of_the_policy(policy: EvictionPolicy, survivor: str) -> None:
    """Of two windows, the older was hit: by birth it goes first, by use and by hits it stays."""
    hybrid = Hybrid(policy=policy)
    first, late = list(range(6)), list(range(50, 56))
    for tokens in (first, late):
        hybrid.insert(tokens)
    hybrid.hit(first)
    hybrid.cache.evict(0, 1)

    assert (hybrid.match(first), hybrid.match(late)) == ((5, 0) if survivor == "hit" else (0, 5))


def test_a_window_hit_twice_outlives_one_that_was_used_later() -> None:
    """Windows count their own hits."""
    hybrid = Hybrid(policy="lfu")
    often, late = list(range(6)), list(range(50, 56))
    for tokens in (often, late):
        hybrid.insert(tokens)
    for tokens in (often, often, late):
        hybrid.hit(tokens)
    hybrid.cache.evict(0, 1)

    assert (hybrid.match(often), hybrid.match(late)) == (5, 0)


def test_a_window_that_comes_back_is_new() -> None:
    """What was evicted and computed again came in when it was computed again."""
    hybrid = Hybrid(policy="fifo")
    short = list(range(9))
    hybrid.insert(short)
    hybrid.insert([*short, *range(40, 50)])
    front = hybrid.cache.tree.match(hybrid.make_key(short)).node
    (rear,) = front.children.values()
    assert WINDOW_USE.of(front).born < WINDOW_USE.of(rear).born

    hybrid.cache.evict(0, 1)
    hybrid.insert(short)

    assert WINDOW_USE.of(front).born > WINDOW_USE.of(rear).born
