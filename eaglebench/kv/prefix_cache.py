"""The prefix cache: what requests borrow from the tree and what they leave there.

slots of a running request

0 ........ tree_owned_slots ............ num_written ...... end of the table
[ the tree's, locked        )[ the request's own                           )

checkpoint:  [tree_owned_slots, page floor of the settled units) goes to the tree
             where the tree already holds it, the request's copy is freed, once, and its
             table is pointed at the tree's pages: a row never names a page it does not own
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eaglebench.errors import InvariantError
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import PrefixKey
from eaglebench.kv.pages import PageAllocator
from eaglebench.kv.radix import Match, Node, RadixTree
from eaglebench.kv.tables import BlockTable

_NO_PAGES = np.empty(0, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class PrefixHit:
    """A cached prefix: `num_slots` slots in `pages`; good until the tree changes shape."""

    num_slots: int
    pages: NDArray[np.int32]
    match: Match | None = None


@dataclass(slots=True)
class PrefixLock:
    """A receipt for a locked prefix; gives back exactly once."""

    node: Node | None
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

    def __init__(self, geometry: PageGeometry, pages: PageAllocator) -> None:
        self.geometry = geometry
        self.pages = pages
        self.tree = RadixTree(geometry)
        self.num_evictions = 0

    @property
    def num_evictable_pages(self) -> int:
        """Pages of the tree that nobody has locked."""
        return self.tree.num_evictable_pages

    @property
    def num_protected_pages(self) -> int:
        """Pages of the tree that somebody has locked."""
        return self.tree.num_protected_pages

    def lookup(self, key: PrefixKey, max_slots: int) -> PrefixHit:
        """The longest cached prefix of a key, at most `max_slots` slots, in whole pages."""
        match = self.tree.match(key.head(self.geometry.floor(max_slots)))
        num_slots = match.num_pages * self.geometry.page_size
        return PrefixHit(num_slots, self.tree.pages_of(match), match)

    def lock(self, hit: PrefixHit) -> PrefixLock:
        """Protect a hit from eviction until the receipt is given back."""
        if hit.match is None:
            raise InvariantError("a hit of another cache can't be locked")
        node = self.tree.end_of(hit.match)
        self.tree.lock(node)
        return PrefixLock(node)

    def unlock(self, lock: PrefixLock) -> None:
        """Give a receipt back."""
        node = lock.spend()
        if node is not None:
            self.tree.unlock(node)

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
        if num_present > first_own:
            kept = self.tree.pages_to(end, len(end.pages))
            self.pages.free(table.replace(first_own, kept[first_own:num_present]))
        self.tree.lock(end)
        self.unlock(lock)
        return settled.num_units, PrefixLock(end)

    def evict(self, num_pages: int) -> int:
        """Free at least `num_pages` unlocked pages if there are as many; returns how many."""
        removed = self.tree.evict(num_pages)
        for pages in removed:
            self.pages.free(pages)
        count = sum(map(len, removed))
        self.num_evictions += count
        return count

    def flush(self) -> None:
        """Free every unlocked page; not counted as eviction."""
        for pages in self.tree.evict(self.tree.num_evictable_pages):
            self.pages.free(pages)

    def owned_pages(self) -> NDArray[np.int32]:
        """All pages of the tree, from a walk."""
        return np.concatenate([_NO_PAGES, *(node.pages for node in self.tree.nodes())])

    def audit(self) -> None:
        """Check the tree's invariants (see `RadixTree`)."""
        self.tree.audit()


class NoPrefixCache:
    """The same verbs for an engine without a prefix cache: everything stays with the request."""

    num_evictable_pages = 0
    num_protected_pages = 0
    num_evictions = 0

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

    def evict(self, num_pages: int) -> int:
        """There is nothing to evict."""
        return 0

    def flush(self) -> None:
        """There is nothing to flush."""

    def owned_pages(self) -> NDArray[np.int32]:
        """No pages."""
        return _NO_PAGES

    def audit(self) -> None:
        """There is nothing that could be wrong."""
