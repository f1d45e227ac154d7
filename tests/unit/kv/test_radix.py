"""The tree alone: match, insert, split, locks and eviction."""

import numpy as np
import pytest

from eaglebench.errors import InvariantError
from eaglebench.kv.eviction import Use
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import BigramKey
from eaglebench.kv.radix import Node, NodeFacts, RadixTree
from eaglebench.records.knobs import EvictionPolicy


def make_tree(page_size: int = 1, policy: EvictionPolicy = "lru") -> RadixTree:
    """An empty tree."""
    return RadixTree(PageGeometry(page_size), policy)


def pages(*ids: int) -> np.ndarray:
    """Page ids."""
    return np.array(ids, dtype=np.int32)


def insert(tree: RadixTree, tokens: list[int], first_page: int) -> tuple[int, Node]:
    """Insert the bigrams of some tokens under consecutive page ids."""
    key = BigramKey(tokens).page_aligned(tree.geometry)
    count = tree.geometry.pages_for(key.num_units)
    return tree.insert(key, np.arange(first_page, first_page + count, dtype=np.int32))


def found(tree: RadixTree, tokens: list[int]) -> list[int]:
    """Page ids that a match returns."""
    ids: list[int] = tree.pages_of(tree.match(BigramKey(tokens))).tolist()
    return ids


def evicted(tree: RadixTree, num_pages: int) -> list[list[int]]:
    """Page ids that an eviction removes, leaf by leaf."""
    return [each.tolist() for each in tree.evict(num_pages)]


def test_an_empty_tree_matches_nothing() -> None:
    """No pages, at the root."""
    tree = make_tree()

    assert found(tree, [1, 2, 3]) == []
    assert found(tree, []) == []


def test_the_eagle_unit_numbers() -> None:
    """Prefixes 0, 2, 0, 4 of SGLang's own bigram test, and its first eviction."""
    tree = make_tree()
    prefixes = [
        insert(tree, tokens, first)[0]
        for first, tokens in [
            (1, [1, 2, 3]),
            (11, [1, 2, 3, 4, 5, 6, 7]),
            (21, [10, 11, 12]),
            (31, [1, 2, 3, 4, 5, 60, 70]),
        ]
    ]

    assert prefixes == [0, 2, 0, 4]
    assert found(tree, [1, 2, 3, 4, 5, 60, 70]) == [1, 2, 13, 14, 35, 36]
    assert evicted(tree, 1) == [[21, 22]]
    assert evicted(tree, 1) == [[15, 16]]
    tree.audit()


def test_a_match_ends_before_a_different_successor() -> None:
    """The slot of the last shared token holds the donor's draft KV, so it is not shared."""
    tree = make_tree()
    insert(tree, [1, 2, 3, 4], 1)

    assert found(tree, [1, 2, 3, 9]) == [1, 2]
    assert found(tree, [1, 2, 3]) == [1, 2]


def test_a_match_ends_at_a_page() -> None:
    """At page size 4 nine shared tokens are eight bigrams, two pages; eight tokens are one."""
    tree = make_tree(4)
    insert(tree, list(range(13)), 1)

    assert found(tree, list(range(9))) == [1, 2]
    assert found(tree, [*range(9), 99, 99, 99, 99]) == [1, 2]
    assert found(tree, list(range(8))) == [1]
    assert found(tree, list(range(4))) == []


def test_an_insert_splits_at_a_page() -> None:
    """The shared pages become a node of their own and nothing is lost."""
    tree = make_tree(2)
    insert(tree, [1, 2, 3, 4, 5, 6, 7], 1)
    num_present, _ = insert(tree, [1, 2, 3, 4, 5, 8, 9], 11)

    assert num_present == 2
    assert sorted(len(node.pages) for node in tree.nodes()) == [1, 1, 2]
    assert found(tree, [1, 2, 3, 4, 5, 6, 7]) == [1, 2, 3]
    assert found(tree, [1, 2, 3, 4, 5, 8, 9]) == [1, 2, 13]
    tree.audit()


def test_an_insert_needs_the_pages_of_its_key() -> None:
    """Neither no pages nor a page for half a key."""
    tree = make_tree(2)

    with pytest.raises(InvariantError, match="can't hold 4 units"):
        tree.insert(BigramKey([1, 2, 3, 4, 5]), pages())
    with pytest.raises(InvariantError, match="can't hold 3 units"):
        tree.insert(BigramKey([1, 2, 3, 4]), pages(1, 2))
    assert list(tree.nodes()) == []


def test_match_and_insert_leave_the_key_alone() -> None:
    """Using one key twice gives the same answer twice."""
    tree = make_tree()
    key = BigramKey([1, 2, 3, 4])
    tree.insert(key, pages(1, 2, 3))

    assert [tree.match(key).num_pages for _ in range(2)] == [3, 3]
    assert key == BigramKey([1, 2, 3, 4])


def test_name_spaces_are_apart_and_vanish_when_empty() -> None:
    """Equal tokens under two names are held twice; an emptied name leaves nothing behind."""
    tree = make_tree()
    for number, name in enumerate(["a", "b"]):
        tree.insert(BigramKey([1, 2, 3], name), pages(number * 2 + 1, number * 2 + 2))

    assert tree.num_evictable_pages == 4
    assert tree.match(BigramKey([1, 2, 3])).num_pages == 0
    tree.evict(4)
    assert [name for name in tree.roots if name is not None] == []


def test_the_least_recently_used_leaf_goes_first() -> None:
    """A match makes a path young again."""
    tree = make_tree()
    for first, tokens in [(1, [1, 2]), (2, [3, 4]), (3, [5, 6])]:
        insert(tree, tokens, first)
    tree.match(BigramKey([1, 2]))

    assert evicted(tree, 3) == [[2], [3], [1]]


@pytest.mark.parametrize(
    ("policy", "order"),
    [("lru", [[2], [3], [1]]), ("fifo", [[1], [2], [3]]), ("lfu", [[2], [3], [1]])],
)
def test_each_policy_has_its_order(policy: EvictionPolicy, order: list[list[int]]) -> None:
    """Oldest use, oldest birth, fewest hits: three leaves, of which the first was hit."""
    tree = make_tree(policy=policy)
    for first, tokens in [(1, [1, 2]), (2, [3, 4]), (3, [5, 6])]:
        insert(tree, tokens, first)
    tree.count_hit(tree.match(BigramKey([1, 2])).node)

    assert evicted(tree, 3) == order


def test_a_leaf_hit_twice_outlives_one_that_was_used_later() -> None:
    """Frequency comes first; the time of use decides between equals."""
    tree = make_tree(policy="lfu")
    for first, tokens in [(1, [1, 2]), (2, [3, 4]), (3, [5, 6])]:
        insert(tree, tokens, first)
    for tokens in ([1, 2], [1, 2], [5, 6], [3, 4]):
        tree.count_hit(tree.match(BigramKey(tokens)).node)

    assert evicted(tree, 3) == [[3], [2], [1]]


def test_parts_of_a_split_node_keep_its_past() -> None:
    """A front made by a cut is as old as the node it came from, and was hit as often."""
    tree = make_tree()
    _, node = insert(tree, [1, 2, 3, 4], 1)
    tree.count_hit(node)
    front = tree.end_of(tree.match(BigramKey([1, 2])))

    assert (front.use.born, front.use.hits) == (node.use.born, 1)


def test_a_parent_goes_after_its_last_child() -> None:
    """Only leaves are evicted; an inner node becomes one when it has lost its children."""
    tree = make_tree()
    insert(tree, [1, 2, 3], 1)
    insert(tree, [1, 2, 3, 4], 11)
    insert(tree, [1, 2, 3, 5], 21)

    assert evicted(tree, 99) == [[13], [23], [1, 2]]
    assert tree.num_evictable_pages == 0


def test_a_split_node_is_younger_than_the_unused_and_older_than_the_new() -> None:
    """A node that was matched in part counts as used; the leaf put beside its rear is younger."""
    tree = make_tree()
    insert(tree, [1, 2, 3, 4], 1)
    insert(tree, [7, 8], 5)
    insert(tree, [1, 2, 9], 11)

    assert evicted(tree, 99) == [[5], [2, 3], [12], [1]]


def test_locked_nodes_stay() -> None:
    """A lock protects the path to the root, from eviction and in the counters."""
    tree = make_tree()
    _, node = insert(tree, [1, 2, 3], 1)
    insert(tree, [1, 2, 3, 4], 11)
    tree.lock(node)

    assert (tree.num_protected_pages, tree.num_evictable_pages) == (2, 1)
    assert evicted(tree, 99) == [[13]]
    tree.unlock(node)
    assert evicted(tree, 99) == [[1, 2]]


def test_splitting_a_locked_node_keeps_its_locks() -> None:
    """Both parts are locked as often as the node was, and one unlock frees both."""
    tree = make_tree()
    _, node = insert(tree, [1, 2, 3, 4], 1)
    tree.lock(node)
    tree.lock(node)
    insert(tree, [1, 2, 9], 11)
    tree.audit()

    assert tree.num_protected_pages == 3
    tree.unlock(node)
    tree.unlock(node)
    assert tree.num_protected_pages == 0
    tree.audit()


def test_unlocking_too_often_is_a_bug() -> None:
    """Counts never go below zero."""
    tree = make_tree()
    _, node = insert(tree, [1, 2], 1)

    with pytest.raises(InvariantError, match="not locked"):
        tree.unlock(node)


def test_a_root_can_be_locked() -> None:
    """A lock on the empty prefix is valid and protects nothing."""
    tree = make_tree()
    root = tree.root(None)
    tree.lock(root)
    tree.unlock(root)

    assert tree.num_protected_pages == 0


def test_a_leaf_does_not_keep_the_whole_key_alive() -> None:
    """A long prompt that is checkpointed in chunks keeps its tokens once, not once a chunk."""
    tree = make_tree()
    tokens = np.arange(1000, dtype=np.int32)
    for end in range(100, 1001, 100):
        key = BigramKey(tokens[:end])
        tree.insert(key, np.arange(1, end, dtype=np.int32))
    kept = sum(
        len(node.tokens if node.tokens.base is None else node.tokens.base) for node in tree.nodes()
    )

    assert kept < 1.1 * len(tokens)


def test_parts_keep_their_facts_of_a_node_apart() -> None:
    """What the windows know of a node and what a copy on the host would be do not meet."""
    _, node = insert(make_tree(), [1, 2], 1)
    windows, host = NodeFacts("window", Use), NodeFacts[list[int]]("host", list)

    assert node.facts == {}
    windows.of(node).hits = 3
    host.of(node).append(7)

    assert (windows.of(node).hits, host.of(node)) == (3, [7])


@pytest.mark.parametrize(
    ("law", "damage"),
    [
        ("I1", lambda _, node: setattr(node, "pages", node.pages[:1])),
        ("I2", lambda _, node: setattr(node, "token", b"other")),
        ("I3: a parent", lambda _, node: setattr(node, "lock_count", 1)),
        ("I3: an unlocked", lambda _, node: setattr(node.use, "is_queued", False)),
        ("I4", lambda tree, _: setattr(tree, "num_evictable_pages", 99)),
    ],
)
def test_the_audit_names_the_broken_invariant(law: str, damage: object) -> None:
    """Each invariant, damaged on purpose, is reported by its number."""
    tree = make_tree()
    insert(tree, [1, 2, 3], 1)
    _, leaf = insert(tree, [1, 2, 3, 4, 5, 6], 11)
    tree.audit()
    assert callable(damage)
    damage(tree, leaf)

    with pytest.raises(InvariantError, match=law):
        tree.audit()
