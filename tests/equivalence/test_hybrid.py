"""Targets with window layers: the same tokens and the same accepted drafts in every cache arm.

float64, the tiny pair with a window and a sink a head in every odd layer. The oracle computes every
prefix densely with a window mask, one pool for all layers, no cache and no speculation.
"""

from functools import cache
from itertools import product

import pytest
from allpairspy import AllPairs

from eaglebench.records.generation import GenerationRequest
from eaglebench.records.observation import RequestObservation
from tests.engines import hybrid_models, make_engine, make_knobs, make_request, make_rule, run_all
from tests.prompts import shared_prefix_prompts
from tests.slow_oracle import greedy_decode

PAGE_SIZES = (1, 2, 4, 16, 64)
CHUNKS = (None, 3, 16, 64)
WINDOWS = (1, 3, 8, 16, 128)
PARALLEL = (1, 3)
AXES = (PAGE_SIZES, CHUNKS, WINDOWS, PARALLEL)
PAIRWISE = [tuple(cell) for cell in AllPairs([list(axis) for axis in AXES])]
FULL = list(product(*AXES))
CELL = ("page_size", "chunk", "window", "parallel")


def make_requests() -> list[GenerationRequest]:
    """Resends, branches and extensions, several small windows long."""
    return [
        make_request(f"r{index}", ids, max_new_tokens=10 + 5 * (index % 3))
        for index, ids in enumerate(shared_prefix_prompts())
    ]


@cache
def expected_outputs(window: int) -> dict[str, tuple[int, ...]]:
    """What plain greedy decoding says."""
    models = hybrid_models(window)
    return {
        request.request_id: tuple(
            greedy_decode(models, request.prompt_token_ids, make_rule(request))[0]
        )
        for request in make_requests()
    }


def run_arm(
    arm: str, page_size: int, chunk: int | None, window: int, parallel: int
) -> dict[str, RequestObservation]:
    """All requests through one arm, strictly audited."""
    knobs = make_knobs(
        arm,
        steps=2,
        page_size=page_size,
        chunked_prefill_size=chunk,
        parallel=parallel,
        swa_full_tokens_ratio=0.5,
    )
    return run_all(make_engine(knobs, models=hybrid_models(window)), make_requests())


def check_cell(page_size: int, chunk: int | None, window: int, parallel: int) -> None:
    """Outputs equal the oracle's, accepted counts are those of no-cache, tokens were cached."""
    arms = {
        arm: run_arm(arm, page_size, chunk, window, parallel)
        for arm in ("radix", "force-miss", "no-cache")
    }

    for arm, observed in arms.items():
        outputs = {name: o.output_token_ids for name, o in observed.items()}
        assert expected_outputs(window) == outputs, arm
        accepted = {name: o.accepted_per_step for name, o in observed.items()}
        assert {n: o.accepted_per_step for n, o in arms["no-cache"].items()} == accepted, arm
    assert sum(o.counters.cached_tokens or 0 for o in arms["radix"].values()) > 0


@pytest.mark.parametrize(CELL, PAIRWISE)
def test_arms_agree_with_the_dense_window(
    page_size: int, chunk: int | None, window: int, parallel: int
) -> None:
    """A pairwise array over page, chunk, window and batch."""
    check_cell(page_size, chunk, window, parallel)


@pytest.mark.full
@pytest.mark.parametrize(CELL, FULL)
def test_arms_agree_with_the_dense_window_everywhere(
    page_size: int, chunk: int | None, window: int, parallel: int
) -> None:
    """The full product."""
    check_cell(page_size, chunk, window, parallel)
