"""One radix tree over page-aligned keys: which pages hold the KV of which units.

    root ── A (pages 1 2) ─┬─ B (page 3)
                           └─ C (pages 7 8 9)

An edge is a node: its tokens (units and the boundary token) and one page id for every page of
units. Children are found by the bytes of their first page. The tree knows keys and pages, nothing
of requests, slots or tensors.

I1  A node holds len(pages) * page_size units, at least one page; the root holds none.
I2  Siblings differ within their first page.
I3  A parent's lock count is at least that of each child; only unlocked leaves are evicted.
I4  num_evictable_pages and num_protected_pages equal a walk over unlocked and locked nodes.
"""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from eaglebench.errors import InvariantError
from eaglebench.kv.eviction import EvictionQueue, Use
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import PrefixKey
from eaglebench.kv.pages import NO_PAGES
from eaglebench.records.knobs import EvictionPolicy

_NO_TOKENS = np.empty(0, dtype=np.int32)
Fact = TypeVar("Fact")


class Node:
    """An edge of the tree and what hangs below it.

    `facts` holds what other parts know of the node's KV (a sliding window, a copy on the host), each
    under its own name (see `NodeFacts`); the tree itself does not look at them.
    """

    __slots__ = (
        "children",
        "facts",
        "lock_count",
        "namespace",
        "pages",
        "parent",
        "token",
        "tokens",
        "use",
    )

    def __init__(
        self,
        parent: "Node | None",
        token: bytes,
        tokens: NDArray[np.int32],
        pages: NDArray[np.int32],
    ) -> None:
        self.parent = parent
        self.token = token  # key of this node among its siblings
        self.tokens = tokens
        self.pages = pages
        self.children: dict[bytes, Node] = {}
        self.lock_count = 0
        self.use = Use()
        self.namespace: str | None = None  # of a root; the nodes below it don't repeat it
        self.facts: dict[str, object] = {}

    def path(self) -> Iterator["Node"]:
        """This node and its ancestors, the root left out."""
        node = self
        while node.parent is not None:
            yield node
            node = node.parent


class NodeFacts(Generic[Fact]):
    """What one part knows of nodes, under the name of that part; made when first asked for."""

    def __init__(self, name: str, make: Callable[[], Fact]) -> None:
        self.name = name
        self.make = make

    def of(self, node: Node) -> Fact:
        """What the part knows of a node."""
        fact = node.facts.get(self.name)
        if fact is None:
            fact = node.facts[self.name] = self.make()
        return cast("Fact", fact)


class Match(NamedTuple):
    """Longest run of whole pages the tree holds: it ends `num_pages_in_node` pages into `node`.

    `num_reshapes` is the tree's count of splits and removals at the time: later ones make `node`
    mean something else.
    """

    num_pages: int
    node: Node
    num_pages_in_node: int
    num_reshapes: int


class RadixTree:
    """Match, insert, lock and evict. Time is a counter of uses, not a clock."""

    def __init__(self, geometry: PageGeometry, policy: EvictionPolicy = "lru") -> None:
        self.geometry = geometry
        self.num_evictable_pages = 0
        self.num_protected_pages = 0
        self.roots: dict[str | None, Node] = {}
        self._reshapes = 0
        self.on_split: list[Callable[[Node, Node], None]] = []
        """Each is told of (front, rear) when a node is cut: parts that keep facts of nodes."""
        self._queue = EvictionQueue[Node](policy, attrgetter("use"))

    # --- match --------------------------------------------------------------------------------

    def match(self, key: PrefixKey) -> Match:
        """Find the longest cached prefix of a key, in whole pages."""
        self._queue.tick()
        node = self.root(key.namespace)
        num_pages = 0
        size = self.geometry.page_size
        while True:
            self._queue.touch(node.use)
            child = node.children.get(key.page_token(num_pages * size, self.geometry))
            if child is None or key.num_units < (num_pages + 1) * size:
                return Match(num_pages, node, len(node.pages), self._reshapes)
            held = len(child.pages)
            shared = key.shared_with(num_pages * size, child.tokens, held * size)
            in_child = self.geometry.whole_pages(shared)
            num_pages += in_child
            node = child
            if in_child < held:
                self._queue.touch(node.use)
                return Match(num_pages, node, in_child, self._reshapes)

    def pages_of(self, match: Match) -> NDArray[np.int32]:
        """[match.num_pages] int32: the pages of a match, in order."""
        return self.pages_to(match.node, match.num_pages_in_node)

    def pages_to(self, node: Node, num_pages_in_node: int) -> NDArray[np.int32]:
        """The pages from the root to `num_pages_in_node` pages into a node, in order."""
        parts = [node.pages[:num_pages_in_node]]
        if node.parent is not None:
            parts += [each.pages for each in node.parent.path()]
        return np.concatenate(parts[::-1]) if len(parts) > 1 else parts[0]

    def root(self, namespace: str | None) -> Node:
        """The root of a name space, made when it is first asked for."""
        root = self.roots.get(namespace)
        if root is None:
            root = Node(None, b"", _NO_TOKENS, NO_PAGES)
            root.namespace = namespace
            self.roots[namespace] = root
        return root

    def end_of(self, match: Match) -> Node:
        """The node that ends exactly where a match ends, splitting one if need be.

        Raises:
            InvariantError: nodes were split or removed since the match.
        """
        if match.num_reshapes != self._reshapes:
            raise InvariantError("the tree changed between a match and its use")
        if match.num_pages_in_node == len(match.node.pages):
            return match.node
        return self._split(match.node, match.num_pages_in_node)

    # --- insert -------------------------------------------------------------------------------

    def insert(self, key: PrefixKey, pages: NDArray[np.int32]) -> tuple[int, Node]:
        """Make the tree hold a page-aligned key.

        The tree takes over `pages[num_present:]`; the first `num_present` pages it already held
        under ids of its own, and the caller keeps the pages it offered for them.

        Returns:
            (num_present, node at the end of the key).

        Raises:
            InvariantError: pages and units don't belong together.
        """
        if len(pages) * self.geometry.page_size != key.num_units:
            raise InvariantError(f"{len(pages)} pages can't hold {key.num_units} units")
        match = self.match(key)
        node = self.end_of(match)
        if match.num_pages < len(pages):
            from_unit = match.num_pages * self.geometry.page_size
            node = self._add_leaf(node, key, from_unit, pages[match.num_pages :])
        return match.num_pages, node

    def _add_leaf(
        self, parent: Node, key: PrefixKey, from_unit: int, pages: NDArray[np.int32]
    ) -> Node:
        token = key.page_token(from_unit, self.geometry)
        tokens = key.tokens[from_unit:]
        if from_unit:  # a view would keep the whole key alive for the sake of its tail
            tokens, pages = tokens.copy(), pages.copy()
        self._queue.tick()  # the new leaf is younger than what a split left beside it
        leaf = Node(parent, token, tokens, pages)
        self._queue.touch(leaf.use)
        parent.children[token] = leaf
        self.num_evictable_pages += len(pages)
        self._enqueue(leaf)
        return leaf

    def _split(self, node: Node, num_pages: int) -> Node:
        """Cut a node after `num_pages` pages; returns the new front part.

        The rear stays the same object, so whoever holds a lock on it still does.
        """
        parent = node.parent
        if parent is None or not 0 < num_pages < len(node.pages):
            raise InvariantError(f"can't split a node after {num_pages} of {len(node.pages)} pages")
        size = self.geometry.page_size
        overlap = len(node.tokens) - len(node.pages) * size
        front = Node(
            parent,
            node.token,
            node.tokens[: num_pages * size + overlap],
            node.pages[:num_pages],
        )
        front.use.inherit(node.use)
        self._reshapes += 1
        front.lock_count = node.lock_count
        parent.children[node.token] = front
        node.tokens = node.tokens[num_pages * size :]
        node.pages = node.pages[num_pages:]
        node.token = node.tokens[: size + overlap].tobytes()
        node.parent = front
        front.children[node.token] = node
        for told in self.on_split:
            told(front, node)
        return front

    def count_hit(self, node: Node) -> None:
        """A hit that ends with this node was taken."""
        for each in node.path():
            each.use.hits += 1

    # --- locks --------------------------------------------------------------------------------

    def lock(self, node: Node) -> None:
        """Protect a node and its ancestors from eviction."""
        for each in node.path():
            if each.lock_count == 0:
                self.num_evictable_pages -= len(each.pages)
                self.num_protected_pages += len(each.pages)
            each.lock_count += 1

    def unlock(self, node: Node) -> None:
        """Take one protection off a node and its ancestors."""
        for each in node.path():
            if each.lock_count == 0:
                raise InvariantError("unlocked a node that is not locked")
            each.lock_count -= 1
            if each.lock_count == 0:
                self.num_evictable_pages += len(each.pages)
                self.num_protected_pages -= len(each.pages)
                self._enqueue(each)

    # --- evict --------------------------------------------------------------------------------

    def evict(self, num_pages: int) -> list[NDArray[np.int32]]:
        """Remove unlocked leaves, in the order of the policy, until `num_pages` pages are out."""
        removed: list[NDArray[np.int32]] = []
        count = 0
        while count < num_pages and (node := self._queue.pop(_may_go)) is not None:
            removed.append(node.pages)
            count += len(node.pages)
            self._remove(node)
        return removed

    def remove(self, leaf: Node) -> NDArray[np.int32]:
        """Take an unlocked leaf out of the tree; its pages are the caller's.

        Raises:
            InvariantError: it is locked, has children, or is a root.
        """
        if leaf.children or leaf.lock_count:
            raise InvariantError("only an unlocked leaf can be removed")
        self._remove(leaf)
        return leaf.pages

    def _remove(self, leaf: Node) -> None:
        parent = leaf.parent
        if parent is None:
            raise InvariantError("a root can't be evicted")
        leaf.parent = None  # whoever still queues it sees that it is gone
        del parent.children[leaf.token]
        self._reshapes += 1
        self.num_evictable_pages -= len(leaf.pages)
        if parent.parent is not None:
            self._enqueue(parent)
        elif not parent.children and self.roots.get(parent.namespace) is parent:
            del self.roots[parent.namespace]

    def _enqueue(self, node: Node) -> None:
        """Put an unlocked leaf in the eviction queue; others are put there when they become one."""
        if _may_go(node):
            self._queue.push(node)

    # --- audit --------------------------------------------------------------------------------

    def nodes(self) -> Iterator[Node]:
        """All nodes but the roots."""
        stack = list(self.roots.values())
        while stack:
            node = stack.pop()
            stack.extend(node.children.values())
            if node.parent is not None:
                yield node

    def audit(self) -> None:
        """Check the invariants against a walk.

        Raises:
            InvariantError: one of them is broken; the message names it.
        """
        evictable = protected = 0
        size = self.geometry.page_size
        for node in self.nodes():
            parent = node.parent
            if not len(node.pages) or not 0 <= len(node.tokens) - len(node.pages) * size <= 1:
                raise InvariantError(f"I1: {len(node.tokens)} tokens, {len(node.pages)} pages")
            if parent is None or parent.children.get(node.token) is not node:
                raise InvariantError("I2: a node is not found under its own first page")
            if node.lock_count < 0 or (parent.parent and parent.lock_count < node.lock_count):
                raise InvariantError("I3: a parent is locked less often than its child")
            if not (node.children or node.lock_count or node.use.is_queued):
                raise InvariantError("I3: an unlocked leaf is not in the eviction queue")
            if node.lock_count:
                protected += len(node.pages)
            else:
                evictable += len(node.pages)
        counted = (self.num_evictable_pages, self.num_protected_pages)
        if counted != (evictable, protected):
            raise InvariantError(f"I4: counted {counted}, a walk finds {(evictable, protected)}")


def _may_go(node: Node) -> bool:
    """Whether it is an unlocked leaf; one that was removed has no parent."""
    return not (node.children or node.lock_count or node.parent is None)
