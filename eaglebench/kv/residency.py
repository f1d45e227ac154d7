"""Window residency of the tree's pages: which are live, which are locked, which go next.

A node's page without a window page is a tombstone: its full-attention KV is fine, but no hit may end
in a place where a tombstone lies within the window. A component of the one radix tree; the tree
itself knows nothing of it.

    pages of a path    a   b   c   d   e         window - 1 = 2 pages
    live               x       x   x             a hit may end after a, after d; not after b, c, e
                                                 (after a: unbroken from the root)

R1  A locked page is live and the tree's.
R2  num_evictable and num_protected equal a walk over the tree's live pages.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from eaglebench.errors import InvariantError
from eaglebench.kv.eviction import EvictionQueue, Use
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.radix import Node, NodeFacts, RadixTree
from eaglebench.kv.window import PagePairAllocator, slots_in_front
from eaglebench.records.knobs import EvictionPolicy

WINDOW_USE = NodeFacts("window", Use)
"""When a node's window came in and was needed last; each node with a window page waits to go."""


class WindowResidency:
    """Locks, order of use and eviction of the tree's window pages."""

    def __init__(
        self,
        geometry: PageGeometry,
        pages: PagePairAllocator,
        tree: RadixTree,
        window: int,
        policy: EvictionPolicy = "lru",
    ) -> None:
        self.geometry = geometry
        self.pages = pages
        self.tree = tree
        self.num_in_front = slots_in_front(window)
        self.num_evictable = 0
        self.num_protected = 0
        self._locks = np.zeros(pages.num_pages + 1, dtype=np.int32)
        self._in_tree = np.zeros(pages.num_pages + 1, dtype=np.bool_)
        self._queue = EvictionQueue[Node](policy, WINDOW_USE.of)
        tree.on_split.append(self._note_split)

    # --- what a hit needs ---------------------------------------------------------------------

    def first_needed(self, num_pages: int) -> int:
        """The first of `num_pages` leading pages whose window the next token needs."""
        slots = num_pages * self.geometry.page_size
        return self.geometry.page_of_slot(max(0, slots - self.num_in_front))

    def longest_hit(self, pages: NDArray[np.int32]) -> int:
        """Most leading pages after which every slot in the window is live."""
        live = self.pages.is_live(pages)
        end = len(pages)
        while end:
            first = self.first_needed(end)
            dead = np.flatnonzero(~live[first:end])
            if not len(dead):
                return end
            end = first + int(dead[-1])
        return 0

    # --- locks --------------------------------------------------------------------------------

    def lock(self, node: Node, pages: NDArray[np.int32]) -> NDArray[np.int32]:
        """Pin one window in front of the end of `pages`; returns the pages that are pinned.

        `node` is where the pages end; the nodes that hold the window count as used now.
        """
        needed = pages[self.first_needed(len(pages)) :]
        if not self.pages.is_live(needed).all():
            raise InvariantError("R1: locked a window that is not live")
        fresh = int((self._locks[needed] == 0).sum())
        self._locks[needed] += 1
        self.num_evictable -= fresh
        self.num_protected += fresh
        self._touch(node, len(needed))
        return needed

    def count_hit(self, node: Node, num_pages: int) -> None:
        """A hit that ends with this node and looks at the last `num_pages` pages was taken."""
        for each in _holders(node, num_pages):
            WINDOW_USE.of(each).hits += 1

    def unlock(self, pages: NDArray[np.int32]) -> None:
        """Take one pin off each of these pages."""
        if not len(pages):
            return
        if (self._locks[pages] <= 0).any():
            raise InvariantError("R1: unlocked a window page that is not locked")
        self._locks[pages] -= 1
        freed = int((self._locks[pages] == 0).sum())
        self.num_evictable += freed
        self.num_protected -= freed

    # --- the tree's pages ---------------------------------------------------------------------

    def adopt(self, node: Node, pages: NDArray[np.int32]) -> None:
        """Pages have become the tree's; those without a window page are tombstones from the start."""
        self._in_tree[pages] = True
        self.num_evictable += int(self.pages.is_live(pages).sum())
        self._touch(node, len(pages))

    def revive(self, node: Node, held: NDArray[np.int32], offered: NDArray[np.int32]) -> None:
        """Tombstones of the tree take over the window pages of the same tokens' other copies.

        `held` are all pages of the tree up to the end of `node`; `offered` are the other copies of
        the first ones.
        """
        kept = held[: len(offered)]
        dead = ~self.pages.is_live(kept) & self.pages.is_live(offered)
        for index in np.flatnonzero(dead):
            self.pages.hand_over(int(offered[index]), int(kept[index]))
            self.num_evictable += 1
        if dead.any():
            self._touch(node, len(held))

    def drop(self, pages: NDArray[np.int32]) -> None:
        """Pages are about to leave the tree for the free list."""
        if self._locks[pages].any():
            raise InvariantError("R1: a page left the tree while its window was locked")
        self._in_tree[pages] = False
        self.num_evictable -= int(self.pages.is_live(pages).sum())

    # --- evict --------------------------------------------------------------------------------

    def evict(self, num_pages: int) -> tuple[int, list[NDArray[np.int32]]]:
        """Give back window pages, in the order of the policy, until `num_pages` are out.

        A node in the middle keeps its other KV. A leaf without any window left is of no use: it is
        removed, and so are the ancestors that become such leaves.

        Returns:
            (window pages given back, pages of removed nodes, which the caller frees).
        """
        count = 0
        removed: list[NDArray[np.int32]] = []
        pinned: list[Node] = []
        while count < num_pages and (node := self._queue.pop(self._has_window)) is not None:
            going = node.pages[self._evictable(node)]
            if not len(going) or self.pages.is_live(node.pages).sum() > len(going):
                pinned.append(node)
            else:
                WINDOW_USE.of(node).leave()
            if not len(going):
                continue
            self.num_evictable -= len(going)
            count += self.pages.release_window(going)
            removed += self._remove_useless(node)
        for node in pinned:  # what is locked now can be evicted once it is not
            self._queue.push(node)
        return count, removed

    def _has_window(self, node: Node) -> bool:
        return node.parent is not None and bool(self.pages.is_live(node.pages).any())

    def _evictable(self, node: Node) -> NDArray[np.bool_]:
        evictable: NDArray[np.bool_] = self.pages.is_live(node.pages) & (
            self._locks[node.pages] == 0
        )
        return evictable

    def _remove_useless(self, node: Node | None) -> Iterable[NDArray[np.int32]]:
        while (
            self.num_in_front
            and node is not None
            and node.parent is not None
            and not node.children
            and not node.lock_count
            and not self.pages.is_live(node.pages).any()
        ):
            parent = node.parent
            yield self.tree.remove(node)
            node = parent

    # --- order of use -------------------------------------------------------------------------

    def _touch(self, node: Node, num_pages: int) -> None:
        """The nodes that hold the last `num_pages` pages in front of the end of `node` were used."""
        self._queue.tick()
        for each in _holders(node, num_pages):
            self._queue.touch(WINDOW_USE.of(each))
            self._queue.push(each)

    def _note_split(self, front: Node, rear: Node) -> None:
        """A node was cut in two: both were used when it was."""
        WINDOW_USE.of(front).inherit(WINDOW_USE.of(rear))
        self._queue.push(front)

    # --- audit --------------------------------------------------------------------------------

    def audit(self) -> None:
        """Check R1 and R2 against a walk.

        Raises:
            InvariantError: one of them is broken.
        """
        evictable = protected = 0
        in_tree = np.zeros_like(self._in_tree)
        for node in self.tree.nodes():
            in_tree[node.pages] = True
            live, locked = self.pages.is_live(node.pages), self._locks[node.pages] > 0
            if (locked & ~live).any():
                raise InvariantError("R1: a locked page has no window page")
            evictable += int((live & ~locked).sum())
            protected += int((live & locked).sum())
            if live.any() and not WINDOW_USE.of(node).is_queued:
                raise InvariantError("R2: a node with a window is not in the eviction queue")
        if (in_tree != self._in_tree).any() or self._locks[~in_tree].any():
            raise InvariantError("R1: pages of the tree and of its windows differ")
        counted = (self.num_evictable, self.num_protected)
        if counted != (evictable, protected):
            raise InvariantError(f"R2: counted {counted}, a walk finds {(evictable, protected)}")


def _holders(node: Node, num_pages: int) -> Iterator[Node]:
    """The nodes that hold the last `num_pages` pages in front of the end of `node`."""
    for each in node.path():
        if num_pages <= 0:
            return
        num_pages -= len(each.pages)
        yield each
