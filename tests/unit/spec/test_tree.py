"""Growing, pruning and walking draft trees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eaglebench.spec.accept import accept_chosen
from eaglebench.spec.proposal import ROOT, Proposal
from eaglebench.spec.shape import DraftShape
from eaglebench.spec.tree import TreeGrowth

A, B, C, D, E, F = range(6)


def grow_example(num_nodes: int) -> Proposal:
    """SGLang's worked example: top-k 2, two steps."""
    tree = TreeGrowth(2)
    tree.grow(np.array([[A, B]]), np.log([[0.6, 0.3]]), [0.1])
    tree.grow(np.array([[C, D], [E, F]]), np.log([[0.55, 0.2], [0.9, 0.05]]), [0.1, 0.1])
    return tree.prune(num_nodes)


def test_the_golden_tree() -> None:
    """The best three of six candidates are A, B and C, in the order in which they grew."""
    tree = grow_example(3)

    assert tree.token_ids == (A, B, C)
    assert tree.parents == (ROOT, ROOT, 0)
    assert tree.depths().tolist() == [0, 1, 1, 2]
    assert tree.ancestry().astype(int).tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 0, 1, 0],
        [1, 1, 0, 1],
    ]
    assert (tree.children(ROOT), tree.children(0), tree.children(1)) == ([0, 1], [2], [])


def test_more_nodes_than_candidates_keep_all() -> None:
    """And the whole tree is closed under ancestors."""
    tree = grow_example(100)

    assert tree.token_ids == (A, B, C, D, E, F)
    assert tree.parents == (ROOT, ROOT, 0, 0, 1, 1)


def test_a_certain_child_does_not_lose_its_parent() -> None:
    """A conditional probability of one gives equal scores: the one grown first comes first."""
    tree = TreeGrowth(2)
    tree.grow(np.array([[A, B]]), np.array([[-1.0, -1.0]]), [0.0])
    tree.grow(np.array([[C, D], [E, F]]), np.array([[0.0, 0.0], [0.0, 0.0]]), [0.0, 0.0])

    for num_nodes in range(1, 7):
        proposal = tree.prune(num_nodes)
        assert len(proposal.token_ids) == num_nodes
        assert all(parent < node for node, parent in enumerate(proposal.parents))
    assert tree.prune(3).token_ids == (A, B, C)


Path = tuple[int, ...]
"""A candidate as the choices that lead to it: (2, 0) is the best child of the root's third child."""


def slow_tree(levels: list[dict[Path, list[float]]], num_nodes: int) -> tuple[list[Path], int]:
    """The paths of the best candidates in the order in which they grew, and how many there were.

    `levels` holds the log-probabilities of every node's children. Read off the definition, without
    a line of the code under test: at each level the best nodes so far go on, as many as a node has
    children; of equal sums the one grown first is the better one.
    """
    frontier: list[Path] = [()]
    total: dict[Path, float] = {(): 0.0}
    grown: list[Path] = []
    for children in levels:
        new = [(*node, nth) for node in frontier for nth in range(len(children[node]))]
        for path in new:
            total[path] = total[path[:-1]] + children[path[:-1]][path[-1]]
        topk = len(children[frontier[0]])
        frontier = sorted(new, key=lambda path: -total[path])[:topk]  # a stable sort
        grown += new
    best = sorted(grown, key=lambda path: -total[path])[:num_nodes]
    return [path for path in grown if path in best], len(grown)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 40), st.integers(0, 2**31))
def test_what_is_proposed_is_the_best_and_closed(
    topk: int, num_levels: int, num_nodes: int, seed: int
) -> None:
    """Against the definition on small whole numbers, many of which tie; no parent is lacking."""
    values = np.random.default_rng(seed)
    tree = TreeGrowth(topk)
    names: dict[Path, int] = {}
    levels: list[dict[Path, list[float]]] = []
    frontier: list[Path] = [()]
    for _ in range(num_levels):
        probs = -np.sort(values.integers(0, 3, (len(frontier), topk)).astype(float), axis=-1)
        levels.append(dict(zip(frontier, probs.tolist(), strict=True)))
        new = [(*node, nth) for node in frontier for nth in range(topk)]
        names |= {path: len(names) + number for number, path in enumerate(new)}
        ids = np.array([names[path] for path in new]).reshape(len(frontier), topk)
        tree.grow(ids, probs, [0.0] * len(frontier))
        by_name = {name: path for path, name in names.items()}
        frontier = [by_name[tree.token_ids[candidate]] for candidate in tree.frontier]

    proposal = tree.prune(num_nodes)

    best, num_grown = slow_tree(levels, num_nodes)
    assert len(tree.token_ids) == num_grown == topk + (num_levels - 1) * topk**2
    assert proposal.token_ids == tuple(names[path] for path in best)
    parents = [best.index(path[:-1]) if path[:-1] else ROOT for path in best]
    assert proposal.parents == tuple(parents)


@pytest.mark.parametrize(
    ("choices", "path", "emitted"),
    [
        ((A, C, 9, 7), (0, 2), (A, C, 7)),
        ((A, 8, 9, 7), (0,), (A, 8)),
        ((B, 8, 9, 7), (1,), (B, 9)),
        ((5, 8, 9, 7), (), (5,)),
    ],
)
def test_the_target_walks_the_tree(
    choices: tuple[int, ...], path: tuple[int, ...], emitted: tuple[int, ...]
) -> None:
    """From the root to the child it would have chosen; then its own choice is the bonus."""
    acceptance = accept_chosen(grow_example(3), choices)

    assert (acceptance.path, acceptance.emitted_ids) == (path, emitted)


@given(st.lists(st.integers(0, 2), max_size=6), st.data())
def test_a_chain_given_as_a_tree_is_accepted_alike(drafted: list[int], data: st.DataObject) -> None:
    """Parents spelled out or not."""
    choices = data.draw(
        st.lists(st.integers(0, 2), min_size=len(drafted) + 1, max_size=len(drafted) + 1)
    )
    gaps = (0.0,) * len(drafted)
    thin = Proposal(tuple(drafted), gaps, tuple(range(-1, len(drafted) - 1)))

    assert accept_chosen(Proposal(tuple(drafted), gaps), choices) == accept_chosen(thin, choices)


@pytest.mark.parametrize(
    ("shape", "candidates", "scratch"),
    [
        (DraftShape(3, 1, 3), 3, 2),
        (DraftShape(1, 4, 4), 4, 0),
        (DraftShape(5, 8, 60), 264, 32),
        (DraftShape(8, 10, 59), 710, 70),
        (DraftShape(0, 1, 0), 0, 0),
    ],
)
def test_sizes_of_trees(shape: DraftShape, candidates: int, scratch: int) -> None:
    """Topk + (levels - 1) * topk^2 candidates; topk slots at every level but the last."""
    assert (shape.num_candidates, shape.num_scratch_slots) == (candidates, scratch)


def test_near_the_limit_a_tree_is_cut_to_the_levels_that_fit() -> None:
    """With no more nodes than those levels grow."""
    assert DraftShape(3, 4, 20).at_most(1) == DraftShape(1, 4, 4)
    assert DraftShape(3, 4, 20).at_most(9) == DraftShape(3, 4, 20)
    assert DraftShape(3, 4, 20).at_most(-1).num_nodes == 0


def test_a_lead_that_is_no_number_marks_the_whole_tree() -> None:
    """Once the head's logits were not finite, no node has a gap, whatever grows after it."""
    tree = TreeGrowth(topk=2)
    log_probs = np.log([[0.6, 0.3]])
    tree.grow(np.array([[5, 6]]), log_probs, [float("nan")])
    tree.grow(np.array([[1, 2], [3, 4]]), np.repeat(log_probs, 2, axis=0), [0.5, 0.5])

    proposal = tree.prune(3)

    assert len(proposal.token_ids) == 3
    assert [str(gap) for gap in proposal.gaps] == ["nan"] * 3
