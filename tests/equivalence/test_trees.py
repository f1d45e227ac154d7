"""Draft trees: lossless, neutral to the cache, and the same KV as a linear run.

float64 and the tiny pair, with and without window layers. The oracle decodes plainly.
"""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise, product, takewhile
from typing import NamedTuple

import pytest
import torch
from allpairspy import AllPairs
from torch import Tensor

from eaglebench.engine.engine import Engine
from eaglebench.engine.models import Models
from eaglebench.engine.request import EngineRequest
from eaglebench.records.draft_shape import usual_draft_tokens
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.observation import RequestObservation
from eaglebench.spec.proposal import ROOT, Proposal
from tests.engines import (
    hybrid_models,
    make_engine,
    make_knobs,
    make_request,
    make_rule,
    run_all,
    tiny_models,
)
from tests.prompts import shared_prefix_prompts
from tests.slow_oracle import cold_draft_pool, cold_target_pool, greedy_decode

TOLERANCE = 1e-10
WINDOWS = (None, 8)
ARMS = ("radix", "force-miss", "no-cache")
AXES = {
    "topk": (2, 4, 8),
    "steps": (1, 2, 3, 5),
    "page_size": (1, 2, 4, 16),
    "chunk": (None, 5),
    "parallel": (1, 3),
    "window": WINDOWS,
}


class Cell(NamedTuple):
    """One point of the axes; `num_draft_tokens` is what is usual unless it is given."""

    topk: int = 4
    steps: int = 3
    page_size: int = 1
    chunk: int | None = None
    parallel: int = 1
    window: int | None = None
    num_draft_tokens: int | None = None


PAIRWISE = [Cell._make((*cell, None)) for cell in AllPairs([list(a) for a in AXES.values()])]
FULL = [Cell._make((*cell, None)) for cell in product(*AXES.values())]


def models_of(window: int | None, backend: str = "auto") -> Models:
    """The tiny pair, or a hybrid of it."""
    if window is None:
        return tiny_models(attention_backend=backend)
    return hybrid_models(window, backend)


def make_requests() -> list[GenerationRequest]:
    """Resends, branches and extensions."""
    return [
        make_request(f"r{index}", ids, max_new_tokens=9 + 5 * (index % 3))
        for index, ids in enumerate(shared_prefix_prompts()[:6])
    ]


@cache
def expected_outputs(window: int | None) -> dict[str, tuple[int, ...]]:
    """What plain greedy decoding says."""
    return {
        request.request_id: tuple(
            greedy_decode(models_of(window), request.prompt_token_ids, make_rule(request))[0]
        )
        for request in make_requests()
    }


def run_arm(arm: str, cell: Cell, backend: str = "auto") -> dict[str, RequestObservation]:
    """All requests through one arm, strictly audited, pools full of NaN."""
    knobs = make_knobs(
        arm,
        steps=cell.steps,
        eagle_topk=cell.topk,
        num_draft_tokens=cell.num_draft_tokens or usual_draft_tokens(cell.steps, cell.topk),
        page_size=cell.page_size,
        chunked_prefill_size=cell.chunk,
        parallel=cell.parallel,
    )
    models = models_of(cell.window, backend)
    return run_all(make_engine(knobs, models=models), make_requests())


def check(cell: Cell) -> None:
    """Outputs equal the oracle's, accepted counts those of no-cache; drafts were accepted."""
    arms = {arm: run_arm(arm, cell) for arm in ARMS}

    for arm, observed in arms.items():
        outputs = {name: o.output_token_ids for name, o in observed.items()}
        assert expected_outputs(cell.window) == outputs, arm
        accepted = {name: o.accepted_per_step for name, o in observed.items()}
        assert {n: o.accepted_per_step for n, o in arms["no-cache"].items()} == accepted, arm
    steps = sum(o.counters.verify_steps or 0 for o in arms["radix"].values())
    assert 0.3 * steps < sum(o.counters.accepted or 0 for o in arms["radix"].values())
    cached = {arm: sum(o.counters.cached_tokens or 0 for o in arms[arm].values()) for arm in ARMS}
    assert cached["radix"] > 0
    assert (cached["force-miss"], cached["no-cache"]) == (0, 0)


@pytest.mark.parametrize("cell", PAIRWISE, ids=str)
def test_trees_are_lossless_and_neutral(cell: Cell) -> None:
    """A pairwise array over top-k, steps, page, chunk, batch and window, in every cache arm."""
    check(cell)


@pytest.mark.full
@pytest.mark.parametrize("cell", FULL, ids=str)
def test_trees_are_lossless_and_neutral_everywhere(cell: Cell) -> None:
    """The full product."""
    check(cell)


@pytest.mark.parametrize("shape", [(2, 2, 4), (2, 4, 13), (3, 8, 32), (8, 10, 60)])
@pytest.mark.parametrize("window", WINDOWS)
def test_narrow_full_and_large_trees(shape: tuple[int, int, int], window: int | None) -> None:
    """Few of many candidates, most of few, and EAGLE-2's own shape."""
    steps, topk, num_draft_tokens = shape
    check(Cell(topk, steps, 4, 64, 3, window, num_draft_tokens))


@pytest.mark.parametrize("window", WINDOWS)
def test_the_padded_batch_sees_the_same_tree(window: int | None) -> None:
    """Both attention implementations accept the same drafts."""
    cell = Cell(page_size=4, chunk=16, parallel=3, window=window, num_draft_tokens=16)
    loop = run_arm("radix", cell)
    padded = run_arm("radix", cell, backend="padded")

    assert {n: o.accepted_per_step for n, o in loop.items()} == {
        n: o.accepted_per_step for n, o in padded.items()
    }


def check_kv(engine: Engine, running: EngineRequest) -> None:
    """Both pools hold what a cold linear pass over the known tokens puts there."""
    known = running.known_tokens.tolist()
    slots = torch.from_numpy(running.held.slots(0, running.num_written))
    cold = cold_target_pool(tiny_models(), known)
    for layer in range(tiny_models().target.num_layers):
        place = engine.target_pool.of_layer(layer)
        check_equal(place.pool.gather(place.layer, slots), cold.gather(layer, count_up(slots)))
    assert engine.draft_pool is not None
    settled = slots[: running.draft_valid_len]
    draft = cold_draft_pool(tiny_models(), known)
    check_equal(engine.draft_pool.gather(0, settled), draft.gather(0, count_up(settled)))


def check_equal(got: tuple[Tensor, Tensor], wanted: tuple[Tensor, Tensor]) -> None:
    """Keys and values."""
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, atol=TOLERANCE, rtol=0)


def count_up(slots: Tensor) -> Tensor:
    """Slots of a cold pool: its positions."""
    return torch.arange(len(slots))


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_committed_kv_is_that_of_a_cold_pass(page_size: int) -> None:
    """After accepted nodes have moved to the front, both pools hold what a linear run puts there."""
    knobs = make_knobs(
        "radix", steps=3, eagle_topk=4, num_draft_tokens=12, page_size=page_size, parallel=2
    )
    engine = make_engine(knobs)
    moved = 0
    for request in make_requests():
        engine.add(request)
    while engine.has_work:
        engine.step()
        for running in engine.scheduler.running:
            check_kv(engine, running)
            moved += sum(bool(step.parents) and step.accepted > 0 for step in running.steps)
    assert moved > 0


def start(
    prompt: Sequence[int], page_size: int, replay: Sequence[int] | None = None
) -> tuple[Engine, EngineRequest]:
    """A request whose prompt is computed and whose first tree is proposed."""
    knobs = make_knobs(
        "radix",
        steps=3,
        eagle_topk=3,
        num_draft_tokens=8,
        page_size=page_size,
        max_total_tokens=128,
    )
    engine = make_engine(knobs)
    engine.add(make_request("r", prompt), replay)
    engine.step()
    (running,) = engine.scheduler.running
    return engine, running


def path_to(proposal: Proposal, node: int) -> list[int]:
    """Nodes from the first level to this one; none for the root."""
    path: list[int] = []
    while node != ROOT:
        path.insert(0, node)
        node = proposal.parent(node)
    return path


@pytest.mark.parametrize("page_size", [1, 2, 4, 16])
def test_every_accepted_path_lands_where_a_chain_would(page_size: int) -> None:
    """Every end of the prompt within a page times every path of its first tree.

    A replay makes the target accept just that path. The naive model is a cold linear pass.
    """
    moved = 0
    for length in range(40, 40 + page_size):
        prompt = shared_prefix_prompts()[0][:length]
        _, running = start(prompt, page_size)
        proposal, first = running.proposal, running.output_ids[0]
        for node in range(ROOT, len(proposal.token_ids)):
            path = path_to(proposal, node)
            accepted = [proposal.token_ids[each] for each in path]
            children = {proposal.token_ids[child] for child in proposal.children(node)}
            bonus = next(token for token in range(32, 64) if token not in children)
            replay = [first, *accepted, bonus, *prompt[:4]]

            engine, running = start(prompt, page_size, replay)
            engine.step()

            assert running.output_ids == replay[: 2 + len(path)]
            assert running.num_written == length + 1 + len(path)
            check_kv(engine, running)
            moved += path != list(range(len(path)))
    assert moved > page_size


def test_more_branches_accept_more() -> None:
    """A tree of the same depth holds the chain, so it never accepts less."""
    chain = run_arm("radix", Cell(topk=1, num_draft_tokens=4))
    tree = run_arm("radix", Cell(topk=4, num_draft_tokens=30))

    def steps(observed: dict[str, RequestObservation]) -> int:
        return sum(o.counters.verify_steps or 0 for o in observed.values())

    assert steps(tree) < steps(chain)


def cached_by_hand(prompt: Sequence[int], earlier: Sequence[Sequence[int]], page_size: int) -> int:
    """Slots found again, from a plain list of what was known when earlier requests ended.

    A slot holds a token's state and its successor, so a common beginning of n tokens has n - 1 slots
    in common; the last token of a prompt is always computed.
    """
    most = 0
    for known in earlier:
        pairs = zip(pairwise(prompt), pairwise(known), strict=False)
        most = max(most, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return most // page_size * page_size


@pytest.mark.parametrize("page_size", [1, 4, 16])
@pytest.mark.parametrize("topk", [1, 4])
def test_cached_tokens_are_those_counted_by_hand(topk: int, page_size: int) -> None:
    """One request after another, nothing evicted: every hit to the slot, chains and trees alike."""
    steps = 3
    cell = Cell(topk, steps, page_size, num_draft_tokens=usual_draft_tokens(steps, topk))
    observed = run_arm("radix", cell)
    earlier: list[tuple[int, ...]] = []
    hits = []
    for request in make_requests():
        prompt = tuple(request.prompt_token_ids)
        hits.append(cached_by_hand(prompt, earlier, page_size))
        assert observed[request.request_id].counters.cached_tokens == hits[-1]
        earlier.append((*prompt, *observed[request.request_id].output_token_ids))
    assert len(set(hits)) > 2


def test_a_scarce_pool_evicts_and_preempts_and_changes_no_token() -> None:
    """Trees of four requests at once in a pool for little more than one of them."""
    knobs = make_knobs(
        "radix", steps=4, eagle_topk=4, num_draft_tokens=16, parallel=4, max_total_tokens=160
    )

    observed = run_all(make_engine(knobs), make_requests())

    assert expected_outputs(None) == {n: o.output_token_ids for n, o in observed.items()}
    counters = [o.counters for o in observed.values()]
    assert sum(c.preemptions or 0 for c in counters) > 0
    assert sum(c.evictions or 0 for c in counters) > 0
    assert sum(c.accepted or 0 for c in counters) > 0
