"""Draft trees: lossless, neutral to the cache, and the same KV as a linear run.

float64 and the tiny pair, with and without window layers. The oracle decodes plainly.
"""

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
import torch
from allpairspy import AllPairs

from eaglebench.contracts.generation import GenerationRequest
from eaglebench.contracts.observation import RequestObservation
from eaglebench.engine.models import Models
from eaglebench.engine.oracle import cold_draft_pool, cold_target_pool, greedy_decode
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

TOLERANCE = 1e-10
PAGE_SIZES = (1, 2, 4, 16)
CHUNKS = (None, 5, 64)
SHAPES = ((2, 2, 4), (3, 2, 6), (2, 4, 13), (3, 8, 32), (8, 10, 60))
PARALLEL = (1, 3)
WINDOWS = (None, 8)
AXES = (PAGE_SIZES, CHUNKS, SHAPES, PARALLEL, WINDOWS)


class Cell(NamedTuple):
    """One point of the axes; a shape is steps, top-k and draft tokens."""

    page_size: int = 1
    chunk: int | None = None
    shape: tuple[int, int, int] = (3, 4, 16)
    parallel: int = 1
    window: int | None = None


PAIRWISE = [Cell(*cell) for cell in AllPairs([list(axis) for axis in AXES])]
FULL = [Cell(*cell) for cell in product(*AXES)]


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
    steps, topk, draft_tokens = cell.shape
    knobs = make_knobs(
        arm,
        steps=steps,
        eagle_topk=topk,
        num_draft_tokens=draft_tokens,
        page_size=cell.page_size,
        chunked_prefill_size=cell.chunk,
        parallel=cell.parallel,
    )
    models = models_of(cell.window, backend)
    return run_all(make_engine(knobs, models=models), make_requests())


def check_cell(cell: Cell) -> None:
    """Outputs equal the oracle's; accepted counts are those of no-cache; drafts were accepted."""
    arms = {arm: run_arm(arm, cell) for arm in ("radix", "no-cache")}

    for arm, observed in arms.items():
        outputs = {name: o.output_token_ids for name, o in observed.items()}
        assert expected_outputs(cell.window) == outputs, arm
        accepted = {name: o.accepted_per_step for name, o in observed.items()}
        assert {n: o.accepted_per_step for n, o in arms["no-cache"].items()} == accepted, arm
    steps = sum(o.counters.verify_steps for o in arms["radix"].values())
    assert 0.3 * steps < sum(o.counters.accepted for o in arms["radix"].values())
    assert sum(o.counters.cached_tokens for o in arms["radix"].values()) > 0


@pytest.mark.parametrize("cell", PAIRWISE, ids=str)
def test_trees_are_lossless_and_neutral(cell: Cell) -> None:
    """A pairwise array over page, chunk, shape, batch and window."""
    check_cell(cell)


@pytest.mark.full
@pytest.mark.parametrize("cell", FULL, ids=str)
def test_trees_are_lossless_and_neutral_everywhere(cell: Cell) -> None:
    """The full product."""
    check_cell(cell)


@pytest.mark.parametrize("window", WINDOWS)
def test_the_padded_batch_sees_the_same_tree(window: int | None) -> None:
    """Both attention implementations accept the same drafts."""
    cell = Cell(page_size=4, chunk=16, parallel=3, window=window)
    loop = run_arm("radix", cell)
    padded = run_arm("radix", cell, backend="padded")

    assert {n: o.accepted_per_step for n, o in loop.items()} == {
        n: o.accepted_per_step for n, o in padded.items()
    }


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_committed_kv_is_that_of_a_cold_pass(page_size: int) -> None:
    """After accepted nodes have moved to the front, both pools hold what a linear run puts there."""
    knobs = make_knobs(
        "radix", steps=3, eagle_topk=4, num_draft_tokens=12, page_size=page_size, parallel=2
    )
    engine = make_engine(knobs)
    assert engine.draft_pool is not None
    moved = 0
    for request in make_requests():
        engine.add(request)
    while engine.has_work:
        engine.step()
        for running in engine.scheduler.running:
            known = running.known_tokens.tolist()
            slots = running.held.slots(0, running.num_written)
            cold = cold_target_pool(tiny_models(), known)
            for layer in range(tiny_models().target.num_layers):
                place = engine.target_pool.of_layer(layer)
                got = place.pool.gather(place.layer, torch.from_numpy(slots))
                wanted = cold.gather(layer, torch.arange(len(slots)))
                for mine, theirs in zip(got, wanted, strict=True):
                    torch.testing.assert_close(mine, theirs, atol=TOLERANCE, rtol=0)
            if len(known) > 1:
                settled = min(running.draft_valid_len, len(known) - 1)
                draft = cold_draft_pool(tiny_models(), known)
                got = engine.draft_pool.gather(0, torch.from_numpy(slots[:settled]))
                wanted = draft.gather(0, torch.from_numpy(np.arange(settled)))
                for mine, theirs in zip(got, wanted, strict=True):
                    torch.testing.assert_close(mine, theirs, atol=TOLERANCE, rtol=0)
            moved += sum(bool(step.parents) and step.accepted > 0 for step in running.steps)
    assert moved > 0


def test_more_branches_accept_more() -> None:
    """A tree of the same depth holds the chain, so it never accepts less."""
    chain = run_arm("radix", Cell(shape=(3, 1, 4)))
    tree = run_arm("radix", Cell(shape=(3, 4, 30)))

    def steps(observed: dict[str, RequestObservation]) -> int:
        return sum(o.counters.verify_steps for o in observed.values())

    assert steps(tree) < steps(chain)
