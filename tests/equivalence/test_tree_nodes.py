"""Every node of every draft tree against a linear run of its path, in float64.

Acceptance hardly reacts when a drafter looks at the wrong places, and outputs never do. The logits
behind a node do: they were off by nats where positions, masks or parents' states were wrong.
"""

from typing import NamedTuple

import pytest
import torch
from allpairspy import AllPairs

from eaglebench.engine.engine import Engine
from eaglebench.engine.models import Models
from eaglebench.engine.request import EngineRequest
from eaglebench.records.draft_shape import usual_draft_tokens
from eaglebench.spec.likeliest import choose_greedy
from eaglebench.spec.proposal import ROOT, Proposal, verify_row
from eaglebench.spec.tree import TreeGrowth
from tests.engines import make_engine, make_knobs, make_request, run_all
from tests.linear_runs import LinearRun, ObservedTreeDrafter, observe_trees, windowed_models
from tests.prompts import shared_prefix_prompts
from tests.slow_oracle import dense_logits

TOLERANCE = 1e-10
HEAD_WINDOW, TARGET_WINDOW = 5, 8
AXES = {
    "topk": (2, 3, 6),
    "steps": (2, 3, 5),
    "page_size": (1, 4, 16),
    "chunk": (None, 5),
    "parallel": (1, 3),
    "backend": ("loop", "padded"),
    "head_window": (None, HEAD_WINDOW),
    "target_window": (None, TARGET_WINDOW),
}


class Cell(NamedTuple):
    """One point of the axes."""

    topk: int = 3
    steps: int = 3
    page_size: int = 1
    chunk: int | None = None
    parallel: int = 1
    backend: str = "loop"
    head_window: int | None = None
    target_window: int | None = None

    @property
    def models(self) -> Models:
        """Head and target of this cell."""
        return windowed_models(self.head_window, self.target_window, self.backend)


class Seen(NamedTuple):
    """What was compared: nodes by depth, the root at 0."""

    by_depth: tuple[int, ...]
    batches: int
    cached_tokens: int


PAIRWISE = [Cell._make(cell) for cell in AllPairs([list(values) for values in AXES.values()])]


def make_tree_engine(cell: Cell) -> Engine:
    """A radix engine that drafts trees."""
    knobs = make_knobs(
        "radix",
        steps=cell.steps,
        eagle_topk=cell.topk,
        num_draft_tokens=usual_draft_tokens(cell.steps, cell.topk),
        page_size=cell.page_size,
        chunked_prefill_size=cell.chunk,
        parallel=cell.parallel,
    )
    return make_engine(knobs, models=cell.models)


def compare_all(cell: Cell, num_prompts: int = 4, most_steps: int = 100) -> Seen:
    """Compare all trees of some requests that share prefixes, step after step."""
    engine = make_tree_engine(cell)
    drafter = observe_trees(engine)
    requests = [
        make_request(f"r{index}", prompt, max_new_tokens=8)
        for index, prompt in enumerate(shared_prefix_prompts()[:num_prompts])
    ]
    by_depth = [0] * cell.steps
    batches = cached = 0
    while most_steps and (requests or engine.has_work):
        while requests and engine.has_room:
            engine.add(requests.pop(0))
        ended = engine.step().ended
        cached += sum(observed.counters.cached_tokens or 0 for observed in ended)
        batches += len(drafter.grown) > 1
        compare_grown(cell, engine, drafter, by_depth)
        most_steps -= 1
    return Seen(tuple(by_depth), batches, cached)


def compare_grown(
    cell: Cell, engine: Engine, drafter: ObservedTreeDrafter, by_depth: list[int]
) -> None:
    """The trees of one step; counts what was compared."""
    for grown in drafter.grown:
        (request,) = (each for each in engine.scheduler.running if each.table is grown.table)
        compare_tree(LinearRun(cell.models, known(request)), grown.tree, by_depth)
    drafter.grown.clear()


def known(request: EngineRequest) -> tuple[int, ...]:
    """Its known tokens."""
    return tuple(request.known_tokens.tolist())


def compare_tree(run: LinearRun, tree: TreeGrowth, by_depth: list[int]) -> None:
    """The children of the root and of every node that went on are the linear run's best."""
    for parent in sorted(set(tree.parents)):
        path = path_to(tree, parent)
        expected = run.log_probs([tree.token_ids[node] for node in path])
        children = [node for node, each in enumerate(tree.parents) if each == parent]
        behind = 0.0 if parent == ROOT else tree.scores[parent]
        got = torch.tensor([tree.scores[node] - behind for node in children], dtype=torch.float64)
        best = torch.topk(expected, len(children)).values
        torch.testing.assert_close(got, best, atol=TOLERANCE, rtol=0)
        said = {int(t): float(p) for t, p in zip(target_ids(run), expected, strict=True)}
        mine = torch.tensor([said[tree.token_ids[node]] for node in children], dtype=torch.float64)
        torch.testing.assert_close(mine, best, atol=TOLERANCE, rtol=0)
        by_depth[len(path)] += 1


def target_ids(run: LinearRun) -> torch.Tensor:
    """Target id of each of the head's logits."""
    return run.head.target_ids(torch.arange(run.head.draft_vocab_size))


def path_to(tree: TreeGrowth, node: int) -> list[int]:
    """Candidates from the first level to this one."""
    path: list[int] = []
    while node != ROOT:
        path.insert(0, node)
        node = tree.parents[node]
    return path


@pytest.mark.parametrize("cell", PAIRWISE, ids=str)
def test_every_node_is_drafted_as_in_a_linear_run(cell: Cell) -> None:
    """A pairwise array over shape, page, chunk, batch, backend and windows of head and target."""
    seen = compare_all(cell)

    assert min(seen.by_depth) > 0
    assert seen.by_depth[1] == cell.topk * seen.by_depth[0]
    assert seen.cached_tokens > 0
    assert cell.parallel == 1 or seen.batches > 0


CHAINS = [
    Cell(topk=1, steps=4, page_size=page, chunk=chunk, parallel=3, backend=backend, **windows)
    for page, chunk, backend, windows in (
        (1, None, "loop", {}),
        (4, 5, "padded", {"head_window": HEAD_WINDOW}),
        (16, 5, "loop", {"head_window": HEAD_WINDOW, "target_window": TARGET_WINDOW}),
    )
]


@pytest.mark.parametrize("cell", CHAINS, ids=str)
def test_every_token_of_a_chain_is_drafted_as_in_a_linear_run(cell: Cell) -> None:
    """The likeliest token at every level, with the lead that the linear run gives it."""
    engine = make_tree_engine(cell)
    for index, prompt in enumerate(shared_prefix_prompts()[:3]):
        engine.add(make_request(f"r{index}", prompt, max_new_tokens=8))
    compared = 0
    while engine.has_work:
        engine.step()
        for request in engine.scheduler.running:
            run, ids = LinearRun(cell.models, known(request)), request.proposal.token_ids
            for level, gap in enumerate(request.proposal.gaps):
                best = torch.topk(run.logits(ids[:level]), 2)
                assert ids[level] == int(run.head.target_ids(best.indices[:1]))
                assert gap == pytest.approx(float(best.values[0] - best.values[1]), abs=TOLERANCE)
                compared += 1
    assert compared > 3 * cell.steps


@pytest.mark.parametrize("windows", [(None, None), (HEAD_WINDOW, TARGET_WINDOW)])
@pytest.mark.parametrize("backend", ["loop", "padded"])
def test_a_trees_first_children_are_the_chain(
    backend: str, windows: tuple[int | None, int | None]
) -> None:
    """As deep as the first branch goes on: a tree only adds to what a chain drafts."""
    tree_cell = Cell(6, 3, 4, None, 1, backend, *windows)
    for prompt in shared_prefix_prompts()[:4]:
        engines = [make_tree_engine(cell) for cell in (tree_cell, tree_cell._replace(topk=1))]
        drafter = observe_trees(engines[0])
        for engine in engines:
            engine.add(make_request("r", prompt))
            engine.step()
        (chained,) = engines[1].scheduler.running

        (grown,) = drafter.grown

        first, depth = ROOT, 0
        while first in grown.tree.parents:
            first = grown.tree.parents.index(first)
            assert grown.tree.token_ids[first] == chained.proposal.token_ids[depth]
            depth += 1
        assert depth > 1


@pytest.mark.parametrize("backend", ["loop", "padded"])
@pytest.mark.parametrize("target_window", [None, TARGET_WINDOW])
def test_every_node_is_verified_as_in_a_linear_run(backend: str, target_window: int | None) -> None:
    """The target's choice behind every node and its lead, on paths that are not taken as well."""
    cell = Cell(4, 3, 4, 5, 3, backend, HEAD_WINDOW, target_window)
    prompts = {f"r{index}": ids for index, ids in enumerate(shared_prefix_prompts()[1:3])}
    requests = [make_request(name, ids, max_new_tokens=6) for name, ids in prompts.items()]
    nodes = 0
    for name, observed in run_all(make_tree_engine(cell), requests).items():
        said = [*prompts[name], *observed.output_token_ids]
        for step in observed.steps:
            proposal = Proposal(step.drafted_ids, step.draft_gaps, step.parents)
            root = 1  # known, but without a slot: it stands at the step's position
            for node in range(ROOT, len(step.drafted_ids)):
                path = path_of(proposal, node)
                logits = dense_logits(cell.models, [*said[: step.position + root], *path])[-1:]
                best = choose_greedy(logits)
                assert step.target_ids[verify_row(node)] == int(best.ids)
                gap = step.target_gaps[verify_row(node)]
                assert gap == pytest.approx(float(best.gaps), abs=TOLERANCE)
                nodes += 1
    assert nodes > 2 * 12


def path_of(proposal: Proposal, node: int) -> list[int]:
    """Tokens from the first level to this node; none for the root."""
    path: list[int] = []
    while node != ROOT:
        path.insert(0, proposal.token_ids[node])
        node = proposal.parent(node)
    return path
