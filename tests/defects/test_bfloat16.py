"""In bfloat16 a fault of the draft's state is told from rounding, and rounding is not called one.

Logits of the tiny pair are rounded to sixteenths there, so that one draft in ten leads by less
than what another matrix shape changes.
"""

from functools import cache
from typing import Any

import pytest
import torch

from eaglebench.engine.noise import measure_noise
from eaglebench.records.measured import MeasuredTurn
from eaglebench.stats.pairing import Pair, pair_turns
from eaglebench.stats.tau import Tau, close_shares, thresholds
from tests.engines import make_engine, make_knobs, make_request, run_all, tiny_models
from tests.prompts import question_prompts, shared_prefix_prompts
from tests.turns import make_turn

COLD = ("no-cache", None, 1, 1)
"""Arm, chunk, parallel, page size."""
Place = tuple[str, int | None, int, int]
STEPS = 5
BY_FAR = 2
"""A fault that is seen here is not seen by a hair."""


@cache
def tau_of(dtype: torch.dtype) -> Tau:
    """Thresholds as a run over these questions would measure and record them."""
    return Tau.recorded(thresholds(measure_noise(tiny_models(dtype), question_prompts()[:3])))


@cache
def run_arm(dtype: torch.dtype, place: Place) -> list[MeasuredTurn]:
    """Prompts with shared prefixes, and questions of the tiny suite, through an arm."""
    arm, chunk, parallel, page_size = place
    prompts = [*shared_prefix_prompts(), *question_prompts()[:6]]
    requests = [make_request(f"r{n}", ids, max_new_tokens=32) for n, ids in enumerate(prompts)]
    changes: dict[str, Any] = {"chunked_prefill_size": chunk, "page_size": page_size}
    knobs = make_knobs(arm, steps=STEPS, parallel=parallel, **changes)
    observed = run_all(make_engine(knobs, models=tiny_models(dtype), audit=False), requests)
    return [
        make_turn(
            *seen.steps,
            output=seen.output_token_ids,
            question_id=name,
            prompt_token_ids=requests[int(name[1:])].prompt_token_ids,
            prefill_gap=seen.prefill_gap,
        )
        for name, seen in observed.items()
    ]


def partings(dtype: torch.dtype, place: Place, other: Place) -> list[Pair]:
    """Questions that are not identical in two arms."""
    pairs = pair_turns(run_arm(dtype, place), run_arm(dtype, other), tau_of(dtype))
    assert len(pairs) == 14
    return [pair for pair in pairs if pair.kind != "identical"]


@pytest.mark.parametrize(
    ("dtype", "arm", "chunk"),
    [
        (torch.bfloat16, "unigram", None),
        (torch.bfloat16, "kv-reuse", None),
        (torch.bfloat16, "seam-guess", 4),
        (torch.float32, "kv-reuse", None),
    ],
)
def test_faults_of_the_draft_state_are_told_from_near_ties(
    dtype: torch.dtype, arm: str, chunk: int | None
) -> None:
    """Several questions, one of them by far: by its swing, though each arm's gap may be small."""
    found = partings(dtype, (arm, chunk, 1, 1), ("radix", chunk, 1, 1))

    faults = [pair.parting for pair in found if pair.kind == "draft-state"]
    assert faults
    assert max(p.swing for p in faults if p) > BY_FAR * tau_of(dtype).limit("draft")
    assert not [pair for pair in found if pair.kind == "target-state"]


@pytest.mark.parametrize("place", [("radix", 16, 4, 16), ("no-cache", 5, 3, 1)])
def test_chunks_batches_and_caches_part_at_near_ties_alone(place: Place) -> None:
    """Where they part at all; shapes do move leads here, by more than float32 ever does."""
    found = partings(torch.bfloat16, place, COLD)

    assert {pair.kind for pair in found} <= {"near-tie"}
    assert tau_of(torch.bfloat16).limit("draft") > 100 * tau_of(torch.float32).limit("draft")


def test_close_choices_are_many_in_bfloat16_and_rare_in_float32() -> None:
    """One draft in ten is within noise in the one, one in a thousand in the other."""
    half, single = (
        close_shares(run_arm(dtype, COLD), tau_of(dtype))
        for dtype in (torch.bfloat16, torch.float32)
    )

    assert half.are_many
    assert not single.are_many
    assert max(single.target or 0, single.draft or 0) < 1e-3
