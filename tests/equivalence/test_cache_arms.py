"""Lossless and cache-neutral: every arm gives the oracle's tokens with the same accepted counts.

float64 and the tiny trained pair, so equality is exact: a different chunk, batch or cache hit
changes matrix shapes, but not by enough to move a choice.
"""

from functools import cache

import pytest
from allpairspy import AllPairs

from eaglebench.records.generation import GenerationRequest
from eaglebench.records.observation import RequestObservation
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
from tests.slow_oracle import greedy_decode

PAGE_SIZES = (1, 2, 4, 16, 64)
CHUNKS = (None, 1, 5, 16, 64)
PARALLEL = (1, 3, 5)
STEPS = (1, 3, 5)
AXES = (PAGE_SIZES, CHUNKS, PARALLEL, STEPS)
PAIRWISE = [tuple(cell) for cell in AllPairs([list(axis) for axis in AXES])]
FULL = [(p, c, n, s) for p in PAGE_SIZES for c in CHUNKS for n in PARALLEL for s in STEPS]
CELL = ("page_size", "chunk", "parallel", "steps")


def make_requests() -> list[GenerationRequest]:
    """Prompts that share prefixes, one of them sent three times, with different lengths."""
    return [
        make_request(f"r{index}", ids, max_new_tokens=12 + 7 * (index % 3), stop_token_ids=(257,))
        for index, ids in enumerate(shared_prefix_prompts())
    ]


@cache
def expected_outputs() -> dict[str, tuple[int, ...]]:
    """What plain greedy decoding says, computed once."""
    models = tiny_models()
    return {
        request.request_id: tuple(
            greedy_decode(models, request.prompt_token_ids, make_rule(request))[0]
        )
        for request in make_requests()
    }


def run_arm(arm: str, cell: tuple[int, int | None, int, int]) -> dict[str, RequestObservation]:
    """All requests through one arm of one cell."""
    page_size, chunk, parallel, steps = cell
    knobs = make_knobs(
        arm, steps=steps, page_size=page_size, chunked_prefill_size=chunk, parallel=parallel
    )
    return run_all(make_engine(knobs), make_requests())


def check_cell(cell: tuple[int, int | None, int, int]) -> None:
    """Compare the three cache arms with the oracle and with each other."""
    arms = {arm: run_arm(arm, cell) for arm in ("radix", "force-miss", "no-cache")}

    for arm, observed in arms.items():
        outputs = {name: o.output_token_ids for name, o in observed.items()}
        assert expected_outputs() == outputs, arm
        accepted = {name: o.accepted_per_step for name, o in observed.items()}
        assert {n: o.accepted_per_step for n, o in arms["no-cache"].items()} == accepted, arm
    steps = sum(o.counters.verify_steps or 0 for o in arms["radix"].values())
    assert 0.3 * steps < sum(o.counters.accepted or 0 for o in arms["radix"].values())
    cached = {
        arm: sum(o.counters.cached_tokens or 0 for o in obs.values()) for arm, obs in arms.items()
    }
    assert cached["radix"] > 0
    assert (cached["force-miss"], cached["no-cache"]) == (0, 0)


@pytest.mark.parametrize(CELL, PAIRWISE)
def test_arms_agree_with_the_oracle(
    page_size: int, chunk: int | None, parallel: int, steps: int
) -> None:
    """Pairwise array over page size x chunk x parallel x steps."""
    check_cell((page_size, chunk, parallel, steps))


@pytest.mark.full
@pytest.mark.parametrize(CELL, FULL)
def test_arms_agree_with_the_oracle_everywhere(
    page_size: int, chunk: int | None, parallel: int, steps: int
) -> None:
    """The full product of the same axes."""
    check_cell((page_size, chunk, parallel, steps))


@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize("policy", ["lru", "fifo", "lfu"])
def test_what_goes_first_changes_no_answer(policy: str, window: int | None) -> None:
    """In a pool that keeps evicting, any order is lossless and accepts as much as no cache at all."""
    models = tiny_models() if window is None else hybrid_models(window)
    observed = {}
    for arm in ("radix", "no-cache"):
        knobs = make_knobs(
            arm,
            page_size=4,
            max_total_tokens=256,
            swa_full_tokens_ratio=0.5,
            chunked_prefill_size=16,
            eviction_policy=policy,
        )
        observed[arm] = run_all(make_engine(knobs, models=models), make_requests())

    for told in ("output_token_ids", "accepted_per_step"):
        assert {n: getattr(o, told) for n, o in observed["radix"].items()} == {
            n: getattr(o, told) for n, o in observed["no-cache"].items()
        }
    assert sum(o.counters.evictions or 0 for o in observed["radix"].values()) > 0
    assert sum(o.counters.cached_tokens or 0 for o in observed["radix"].values()) > 0
