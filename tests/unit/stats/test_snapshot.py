"""What a run is judged by: integers of its first pass, times of all of them."""

from dataclasses import replace

import pytest

from eaglebench.records.measured import MeasuredBlock
from eaglebench.records.observation import StepTimes
from eaglebench.stats.snapshot import make_snapshot
from tests.turns import make_measured_run, make_step, make_turn

TIMES = StepTimes(
    prefill_s=0, mixed_s=0, decode_s=1, prefill_steps=0, mixed_steps=0, decode_steps=1
)
FIRST = make_turn(make_step(10, (3, 4), (3, 4, 5), 2))
"""Three tokens in one step that accepted both drafts."""
LATER = make_turn(
    make_step(10, (3, 4), (3, 1, 0), 1), make_step(12, (3, 4), (1, 0, 0), 0), pass_index=1
)
"""The same question in a later pass, worse."""


def make_block(arm: str, number: int, wall_s: float) -> MeasuredBlock:
    """Ten tokens in so many seconds."""
    return MeasuredBlock(
        cell_id="page1",
        arm=arm,
        pass_index=number,
        block=0,
        order=0,
        question_ids=("q",),
        output_tokens=10,
        verify_steps=5,
        wall_s=wall_s,
        times=TIMES,
    )


def test_counts_are_those_of_the_first_pass() -> None:
    """Later passes repeat the questions: summing them would double every counter."""
    once, repeated = make_measured_run(FIRST), make_measured_run(FIRST, LATER)

    (arm,) = make_snapshot(repeated, {}).arms

    assert (arm.counters["emitted"], arm.counters["verify_steps"]) == (3, 1)
    assert (arm.num_drafts, arm.accepted_at, arm.failed) == (1, (1, 1), 0)
    assert [(q.emitted, q.verify_steps) for q in arm.questions] == [(3, 1)]
    assert (replace(arm, doubts=()),) == make_snapshot(once, {}).arms
    assert [doubt.kind for doubt in arm.doubts] == ["passes"]


def test_failures_of_the_first_pass_are_counted() -> None:
    """Two turns failed, one of which prepares another one's cache, and one failed later."""
    failed = replace(FIRST, error="too long", question_id="r")
    donor = replace(failed, is_measured=False, question_id="s")

    (arm,) = make_snapshot(
        make_measured_run(FIRST, failed, donor, replace(failed, pass_index=1)), {}
    ).arms

    assert arm.failed == 2
    assert [question.question_id for question in arm.questions] == ["q"]


def test_times_are_those_of_all_passes() -> None:
    """Two passes, in each of which the cache's arm took half of the time."""
    cold = replace(FIRST, arm="no-cache")
    blocks = tuple(
        make_block(arm, number, wall_s)
        for number in range(2)
        for arm, wall_s in (("radix", 1.0 + number), ("no-cache", 2.0 + 2 * number))
    )

    radix, no_cache = make_snapshot(make_measured_run(FIRST, cold, LATER, blocks=blocks), {}).arms

    assert radix.noise is not None
    assert (radix.noise.passes, radix.noise.pass_sd_ppm) == (2, 0)
    assert radix.noise.log_ratio_ppm == pytest.approx(693_147, abs=1)  # ln 2
    assert no_cache.noise is None
