"""The prefix cache: what requests borrow from the tree and what they leave there.

slots of a running request

0 ........ tree_owned_slots ............ num_written ...... end of the table
[ the tree's, locked        )[ the request's own                           )

checkpoint:  [tree_owned_slots, page floor of the settled units) goes to the tree
             where the tree already holds it, the request's copy is freed, once, and its
             table is pointed at the tree's pages: a row never names a page it does not own
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eaglebench.errors import InvariantError
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import PrefixKey
from eaglebench.kv.pages import PageAllocator
from eaglebench.kv.radix import Match, Node, RadixTree
from eaglebench.kv.residency import WindowResidency
from eaglebench.kv.tables import BlockTable
from eaglebench.records.knobs import EvictionPolicy

_NO_PAGES = np.empty(0, dtype=np.int32)
MakeResidency = Callable[[RadixTree], WindowResidency]


@dataclass(frozen=True, slots=True)
class PrefixHit:
    """A cached prefix: `num_slots` slots in `pages`; good until the tree changes shape."""

    num_slots: int
    pages: NDArray[np.int32]
    match: Match | None = None


@dataclass(slots=True)
class PrefixLock:
    """A receipt for a locked prefix; gives back exactly once.

    `window_pages` are the pages at its end whose window pages are pinned as well.
    """

    node: Node | None
    window_pages: NDArray[np.int32] = field(default_factory=lambda: _NO_PAGES)
    is_spent: bool = field(default=False)

    def spend(self) -> Node | None:
        """Use the receipt up.

        Raises:
            InvariantError: it was used before.
        """
        if self.is_spent:
            raise InvariantError("a prefix lock was given back twice")
        self.is_spent = True
        return self.node


class PrefixCache:
    """Ownership of cached pages: the tree's until evicted, then the free list's."""

    keeps_prefixes = True
    """Whether what a request leaves behind can be hit."""

    def __init__(
        self,
        geometry: PageGeometry,
        pages: PageAllocator,
        residency: MakeResidency | None = None,
        policy: EvictionPolicy = "lru",
    ) -> None:
        self.geometry = geometry
        self.pages = pages
        self.tree = RadixTree(geometry, policy)
        self.residency = residency(self.tree) if residency is not None else None

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
        if hit.match is None:
            raise InvariantError("a hit of another cache can't be locked")
        node = self.tree.end_of(hit.match)
        lock = self._lock(node, hit.pages)
        self.tree.count_hit(node)
        if self.residency is not None:
            self.residency.count_hit(node, len(lock.window_pages))
        return lock

    def _lock(self, node: Node, pages: NDArray[np.int32]) -> PrefixLock:
        self.tree.lock(node)
        if self.residency is None:
            return PrefixLock(node)
        return PrefixLock(node, self.residency.lock(node, pages))

    def unlock(self, lock: PrefixLock) -> None:
        """Give a receipt back."""
        node = lock.spend()
        if node is not None:
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
        """Hand settled pages of a request to the tree.

        Args:
            key: settled units from position 0 on; floored to the page here.
            table: the request's table; afterwards it names the tree's pages up to the new border.
            tree_owned_slots: slots at the front that the tree owns already.
            lock: receipt for those; spent if anything moved.

        Returns:
            The new number of tree-owned slots and the receipt that goes with it.
        """
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
        return np.concatenate([_NO_PAGES, *(node.pages for node in self.tree.nodes())])

    def audit(self) -> None:
        """Check the tree's invariants (see `RadixTree`) and those of its windows."""
        self.tree.audit()
        if self.residency is not None:
            self.residency.audit()


class NoPrefixCache:
    """The same verbs for an engine without a prefix cache: everything stays with the request."""

    keeps_prefixes = False
    num_evictable_pages = 0
    num_evictable_windows = 0
    num_protected_pages = 0

    def lookup(self, key: PrefixKey, max_slots: int) -> PrefixHit:
        """Nothing is cached."""
        return PrefixHit(0, _NO_PAGES)

    def lock(self, hit: PrefixHit) -> PrefixLock:
        """A receipt for nothing."""
        return PrefixLock(None)

    def unlock(self, lock: PrefixLock) -> None:
        """Take the receipt back."""
        lock.spend()

    def checkpoint(
        self, *, key: PrefixKey, table: BlockTable, tree_owned_slots: int, lock: PrefixLock
    ) -> tuple[int, PrefixLock]:
        """Nothing moves."""
        return tree_owned_slots, lock

    def unlock_windows(self, lock: PrefixLock, num_kept: int) -> None:
        """Nothing is pinned."""

    def evict(self, num_pages: int, num_windows: int = 0) -> int:
        """There is nothing to evict."""
        return 0

    def owned_pages(self) -> NDArray[np.int32]:
        """No pages."""
        return _NO_PAGES

    def audit(self) -> None:
        """There is nothing that could be wrong."""
