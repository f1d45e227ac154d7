"""What is evicted next, against a slow version: all edges in a list, the lowest rank looked up anew.

The slow version knows paths of pages, not nodes: an edge is a path and how many pages of it are its
own. It cuts, touches and counts as the words of `eviction.py` say, and has neither a heap nor an
entry that may be out of date.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eaglebench.kv.cache import CacheSetup, PrefixHit, PrefixLock
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import TokenKey
from eaglebench.kv.pages import PageAllocator
from eaglebench.kv.radix import Node
from eaglebench.kv.radix_cache import RadixCache
from eaglebench.kv.tables import BlockTable
from eaglebench.kv.window import PagePairAllocator
from eaglebench.records.knobs import EVICTION_POLICIES, EvictionPolicy

NUM_PAGES = 24
NUM_WINDOWS = 16
Path = tuple[int, ...]


@dataclass
class Past:
    """What one order looks at."""

    used: int = 0
    born: int = 0
    hits: int = 0

    def touch(self, now: int) -> None:
        """A use; the first one is the birth."""
        self.used = now
        self.born = self.born or now

    def rank(self, policy: EvictionPolicy) -> tuple[int, ...]:
        """Lower goes first."""
        return {"lru": (self.used,), "fifo": (self.born,), "lfu": (self.hits, self.used)}[policy]


@dataclass
class Edge:
    """The last `num_pages` pages of a path, and what happened to them."""

    num_pages: int
    tree: Past = field(default_factory=Past)
    window: Past = field(default_factory=Past)


@dataclass
class SlowBooks:
    """Edges by the path at whose end they lie; `pages` are the ids by path of one page each."""

    policy: EvictionPolicy
    edges: dict[Path, Edge] = field(default_factory=dict)
    pages: dict[Path, int] = field(default_factory=dict)
    locks: list[Path] = field(default_factory=list)
    now: int = 0
    window_now: int = 0

    def along(self, path: Path) -> list[Path]:
        """Edges that share at least a page with a path, from the root on."""
        return sorted(
            (
                end
                for end, edge in self.edges.items()
                if self.first(end, edge) == path[: len(end) - edge.num_pages + 1]
            ),
            key=len,
        )

    @staticmethod
    def first(end: Path, edge: Edge) -> Path:
        """The path to the first page of an edge."""
        return end[: len(end) - edge.num_pages + 1]

    def match(self, path: Path) -> int:
        """Touch what a path meets; returns how many of its pages are there."""
        self.now += 1
        for end in self.along(path):
            self.edges[end].tree.touch(self.now)
        return max((n for n in range(1, len(path) + 1) if path[:n] in self.pages), default=0)

    def cut(self, path: Path) -> None:
        """Let an edge end at the end of a path that is there."""
        for end in self.along(path)[-1:]:
            edge = self.edges[end]
            rest = len(end) - len(path)
            if rest > 0:
                self.edges[path] = Edge(
                    edge.num_pages - rest, replace(edge.tree), replace(edge.window)
                )
                edge.num_pages = rest

    def add(self, path: Path, num_present: int, ids: Iterable[int]) -> None:
        """A new edge behind the first `num_present` pages of a path."""
        self.now += 1
        self.edges[path] = Edge(len(path) - num_present)
        self.edges[path].tree.touch(self.now)
        for n, page in enumerate(ids, start=num_present + 1):
            self.pages[path[:n]] = page

    def holders(self, path: Path, num_pages: int) -> list[Edge]:
        """Edges that hold the last pages of a path."""
        start = len(path) - num_pages
        return [self.edges[end] for end in self.along(path) if len(end) > start]

    def touch_windows(self, path: Path, num_pages: int) -> None:
        """The windows of the last pages of a path were used."""
        self.window_now += 1
        for edge in self.holders(path, num_pages):
            edge.window.touch(self.window_now)

    def is_locked(self, end: Path) -> bool:
        """Whether somebody holds a path that runs over an edge."""
        return any(lock[: len(end)] == end for lock in self.locks)

    def is_leaf(self, end: Path) -> bool:
        """Whether no edge goes on behind this one."""
        return not any(len(other) > len(end) and other[: len(end)] == end for other in self.edges)

    def remove(self, end: Path) -> int:
        """Take an edge out; returns its pages."""
        edge = self.edges.pop(end)
        for n in range(len(end) - edge.num_pages, len(end)):
            del self.pages[end[: n + 1]]
        return edge.num_pages

    def evict(self, num_pages: int) -> int:
        """Remove the lowest unlocked leaf until enough is out."""
        count = 0
        while count < num_pages:
            free = [end for end in self.edges if self.is_leaf(end) and not self.is_locked(end)]
            if not free:
                break
            count += self.remove(min(free, key=lambda end: self.edges[end].tree.rank(self.policy)))
        return count


class Books:
    """A prefix cache and its slow version, told the same things."""

    def __init__(self, policy: EvictionPolicy, page_size: int, window: int | None) -> None:
        self.geometry = geometry = PageGeometry(page_size)
        self.pages = (
            PageAllocator(NUM_PAGES)
            if window is None
            else PagePairAllocator(geometry, NUM_PAGES, NUM_WINDOWS)
        )
        self.cache = RadixCache(CacheSetup(geometry, self.pages, window, policy))
        self.slow = SlowBooks(policy)
        self.held: list[tuple[Path, PrefixLock]] = []

    def key(self, path: Path) -> TokenKey:
        """A page of one token repeated for each number of a path."""
        return TokenKey(np.repeat(np.array(path, dtype=np.int32), self.geometry.page_size))

    def live(self, path: Path) -> list[bool]:
        """Which pages of a path that is there have a window page."""
        ids = [self.slow.pages[path[: n + 1]] for n in range(len(path))]
        found: list[bool] = self.pages.is_live(np.array(ids, dtype=np.int32)).tolist()
        return found

    def peek(self, path: Path) -> PrefixHit:
        """Look a path up without taking the hit."""
        hit = self.cache.lookup(self.key(path), 10_000)
        num_pages = self.slow.match(path)
        if len(hit.pages) < num_pages:
            self.slow.match(path[: len(hit.pages)])
        else:
            assert len(hit.pages) == num_pages
        return hit

    def ask(self, path: Path) -> None:
        """A request that takes its hit and computes the rest, where there is room."""
        hit = self.peek(path)
        found = path[: len(hit.pages)]
        lock = self.cache.lock(hit)
        self.slow.cut(found)
        self._lock(found, lock)
        taken = self.pages.allocate(len(path) - len(found))
        if taken is None or not len(taken):
            self.held.append((found, lock))  # it waits, and has hit nothing
            return
        self._count_hit(found, lock)
        num_present = self.slow.match(path)
        revives = not all(self.live(path[:num_present])[len(found) :])
        table = BlockTable(self.geometry)
        table.append(hit.pages)
        table.append(taken)
        _, lock = self.cache.checkpoint(
            key=self.key(path), table=table, tree_owned_slots=hit.num_slots, lock=lock
        )
        self.slow.cut(path[:num_present])
        if num_present < len(path):
            self.slow.add(path, num_present, table.pages[num_present:].tolist())
        if self.cache.residency is not None:
            if revives:
                self.slow.touch_windows(path, len(path))
            self.slow.touch_windows(path, len(path) - num_present)
        self._lock(path, lock)
        self.slow.locks.remove(found)
        self.held.append((path, lock))

    def _lock(self, path: Path, lock: PrefixLock) -> None:
        self.slow.locks.append(path)
        if self.cache.residency is not None:
            self.slow.touch_windows(path, len(lock.window_pages))

    def _count_hit(self, path: Path, lock: PrefixLock) -> None:
        for edge in self.slow.holders(path, len(path)):
            edge.tree.hits += 1
        for edge in self.slow.holders(path, len(lock.window_pages)):
            edge.window.hits += 1

    def finish(self, which: int) -> None:
        """A request ends."""
        if self.held:
            path, lock = self.held.pop(which % len(self.held))
            self.cache.unlock(lock)
            self.slow.locks.remove(path)

    def evict(self, num_pages: int) -> None:
        """Both give up as many pages."""
        assert self.cache.evict(num_pages) == self.slow.evict(num_pages)

    def evict_window(self) -> None:
        """One node's windows go: of those that may, none has a lower rank."""
        if self.cache.residency is None:
            return
        before = {end: self._evictable(end) for end in self.slow.edges}
        may_go = {end: self.slow.edges[end].window for end, pages in before.items() if pages}
        self.cache.evict(0, 1)
        gone = [end for end in may_go if not self._evictable(end)]
        assert len(gone) == bool(may_go)
        for end in gone:
            ranks = [past.rank(self.slow.policy) for past in may_go.values()]
            assert may_go[end].rank(self.slow.policy) == min(ranks)
            if not any(self.live(end)[-self.slow.edges[end].num_pages :]):
                may_go[end].born = may_go[end].hits = 0
                self._drop_useless(end)

    def _evictable(self, end: Path) -> set[int]:
        """Pages of an edge whose window pages nobody pins."""
        pinned = {page for _, lock in self.held for page in lock.window_pages.tolist()}
        first = len(end) - self.slow.edges[end].num_pages
        ids = [self.slow.pages[end[: n + 1]] for n in range(first, len(end))]
        live = self.pages.is_live(np.array(ids, dtype=np.int32))
        return set(np.array(ids)[live].tolist()) - pinned

    def _drop_useless(self, end: Path) -> None:
        """Leaves without any window go, and so do ancestors that become such leaves."""
        while end in self.slow.edges and self.slow.is_leaf(end) and not self.slow.is_locked(end):
            num_pages = self.slow.edges[end].num_pages
            if any(self.live(end)[-num_pages:]) or not self._looks_back():
                return
            self.slow.remove(end)
            end = end[: len(end) - num_pages]

    def _looks_back(self) -> bool:
        return self.cache.residency is not None and self.cache.residency.num_in_front > 0

    def check(self) -> None:
        """Both hold the same pages in the same edges."""
        self.cache.audit()
        self.pages.audit()
        found = {self._path(node): len(node.pages) for node in self.cache.tree.nodes()}
        assert found == {end: edge.num_pages for end, edge in self.slow.edges.items()}
        assert sorted(self.slow.pages.values()) == sorted(self.cache.owned_pages().tolist())

    def _path(self, node: Node) -> Path:
        parts = [each.tokens[:: self.geometry.page_size].tolist() for each in node.path()]
        return tuple(token for part in parts[::-1] for token in part)


PATHS = st.lists(st.integers(1, 2), min_size=1, max_size=7).map(tuple)
DEEDS = st.one_of(
    st.tuples(st.just("ask"), PATHS),
    st.tuples(st.just("ask"), PATHS),
    st.tuples(st.just("peek"), PATHS),
    st.tuples(st.just("finish"), st.integers(0, 9)),
    st.tuples(st.just("finish"), st.integers(0, 9)),
    st.tuples(st.just("evict"), st.integers(1, 6)),
    st.tuples(st.just("evict_window")),
)


@pytest.mark.parametrize("window", [None, 1, 3, 6])
@pytest.mark.parametrize("policy", EVICTION_POLICIES)
@settings(max_examples=50, deadline=None)
@given(page_size=st.sampled_from([1, 2]), deeds=st.lists(DEEDS, min_size=30, max_size=80))
def test_the_next_to_go_is_the_lowest_of_all(
    policy: EvictionPolicy, window: int | None, page_size: int, deeds: list[tuple[str, object]]
) -> None:
    """Whatever was asked, cut, locked and evicted before, with and without windows."""
    books = Books(policy, page_size, window)
    for verb, *arguments in deeds:
        getattr(books, verb)(*arguments)
        books.check()
