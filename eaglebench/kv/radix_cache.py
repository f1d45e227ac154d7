"""The radix cache: what requests borrow from the tree and what they leave there.

slots of a running request

0 ........ tree_owned_slots ............ num_written ...... end of the table
[ the tree's, locked        )[ the request's own                           )

checkpoint:  [tree_owned_slots, page floor of the settled units) goes to the tree
             where the tree already holds it, the request's copy is freed, once, and its
             table is pointed at the tree's pages: a row never names a page it does not own
"""

from collections.abc import Iterable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from eaglebench.errors import InvariantError
from eaglebench.kv.cache import CacheSetup, PrefixHit, PrefixLock
from eaglebench.kv.keys import PrefixKey
from eaglebench.kv.pages import NO_PAGES
from eaglebench.kv.radix import Match, Node, RadixTree
from eaglebench.kv.residency import WindowResidency
from eaglebench.kv.tables import BlockTable
from eaglebench.kv.window import PagePairAllocator


class RadixCache:
    """A radix tree owns the cached pages: they are the tree's until evicted, then the free list's."""

    keeps_prefixes = True

    def __init__(self, setup: CacheSetup) -> None:
        self.geometry = setup.geometry
        self.pages = setup.pages
        self.tree = RadixTree(setup.geometry, setup.eviction)
        self.residency: WindowResidency | None = None
        if setup.window is not None:
            pairs = cast("PagePairAllocator", setup.pages)
            self.residency = WindowResidency(
                setup.geometry, pairs, self.tree, setup.window, setup.eviction
            )

    @property
    def num_evictable_pages(self) -> int:
        """Pages of the tree that nobody has locked."""
        return self.tree.num_evictable_pages

    @property
    def num_evictable_windows(self) -> int:
        """Window pages of the tree that nobody has locked."""
        return self.residency.num_evictable if self.residency is not None else 0

    @property
    def num_protected_pages(self) -> int:
        """Pages of the tree that somebody has locked."""
        return self.tree.num_protected_pages

    def lookup(self, key: PrefixKey, max_slots: int) -> PrefixHit:
        """The longest cached prefix of a key, at most `max_slots` slots, in whole pages.

        With window layers, the longest one after which the whole window is live.
        """
        match = self.tree.match(key.head(self.geometry.floor(max_slots)))
        pages = self.tree.pages_of(match)
        if self.residency is not None:
            num_pages = self.residency.longest_hit(pages)
            if num_pages < match.num_pages:
                match = self.tree.match(key.head(num_pages * self.geometry.page_size))
                pages = pages[:num_pages]
        return PrefixHit(match.num_pages * self.geometry.page_size, pages, match)

    def lock(self, hit: PrefixHit) -> PrefixLock:
        """Protect a hit from eviction until the receipt is given back."""
        if not isinstance(hit.place, Match):
            raise InvariantError("a hit of another cache can't be locked")
        lock = self._lock(self.tree.end_of(hit.place), hit.pages)
        lock.is_unused_hit = True
        return lock

    def _count_hit(self, lock: PrefixLock) -> None:
        if isinstance(lock.place, Node) and lock.is_unused_hit:
            lock.is_unused_hit = False
            self.tree.count_hit(lock.place)
            if self.residency is not None:
                self.residency.count_hit(lock.place, len(lock.window_pages))

    def _lock(self, node: Node, pages: NDArray[np.int32]) -> PrefixLock:
        self.tree.lock(node)
        if self.residency is None:
            return PrefixLock(node)
        return PrefixLock(node, self.residency.lock(node, pages))

    def unlock(self, lock: PrefixLock) -> None:
        """Give a receipt back."""
        node = lock.spend()
        if isinstance(node, Node):
            self.tree.unlock(node)
        if self.residency is not None:
            self.residency.unlock(lock.window_pages)

    def unlock_windows(self, lock: PrefixLock, num_kept: int) -> None:
        """Take the pins off all but the last `num_kept` window pages of a receipt."""
        if self.residency is not None and num_kept < len(lock.window_pages):
            passed = len(lock.window_pages) - num_kept
            self.residency.unlock(lock.window_pages[:passed])
            lock.window_pages = lock.window_pages[passed:]

    def checkpoint(
        self, *, key: PrefixKey, table: BlockTable, tree_owned_slots: int, lock: PrefixLock
    ) -> tuple[int, PrefixLock]:
        """Hand settled pages of a request to the tree."""
        self._count_hit(lock)
        settled = key.page_aligned(self.geometry)
        if settled.num_units <= tree_owned_slots:
            return tree_owned_slots, lock
        first_own = self.geometry.pages_for(tree_owned_slots)
        offered = table.pages[: self.geometry.pages_for(settled.num_units)]
        num_present, end = self.tree.insert(settled, offered)
        if num_present < first_own:
            raise InvariantError(f"the tree lost pages {num_present} .. {first_own} of a request")
        held = self.tree.pages_to(end, len(end.pages))
        if self.residency is not None:
            self.residency.revive(end, held, offered[:num_present])
            self.residency.adopt(end, held[num_present:])
        if num_present > first_own:
            self.pages.free(table.replace(first_own, held[first_own:num_present]))
        new_lock = self._lock(end, held)
        self.unlock(lock)
        return settled.num_units, new_lock

    def evict(self, num_pages: int, num_windows: int = 0) -> int:
        """Free at least so many unlocked pages and window pages if there are as many.

        Leaves go first, with both; then windows alone, if still short. Returns how many pages and
        lone window pages were freed.
        """
        before = self._num_free_windows()
        count = self._free(self.tree.evict(num_pages))
        still_short = num_windows - (self._num_free_windows() - before)
        if self.residency is not None and still_short > 0:
            lone, removed = self.residency.evict(still_short)
            count += lone + self._free(removed)
        return count

    def _num_free_windows(self) -> int:
        return self.residency.pages.window_pages.num_free if self.residency is not None else 0

    def _free(self, removed: Iterable[NDArray[np.int32]]) -> int:
        count = 0
        for pages in removed:
            if self.residency is not None:
                self.residency.drop(pages)
            self.pages.free(pages)
            count += len(pages)
        return count

    def owned_pages(self) -> NDArray[np.int32]:
        """All pages of the tree, from a walk."""
        return np.concatenate([NO_PAGES, *(node.pages for node in self.tree.nodes())])

    def audit(self) -> None:
        """Check the tree's invariants (see `RadixTree`) and those of its windows."""
        self.tree.audit()
        if self.residency is not None:
            self.residency.audit()
