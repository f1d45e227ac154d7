"""Log-ratios of passes, their estimate, and what it takes to see a change."""

from math import log

import pytest

from eaglebench.records.measured import MeasuredBlock
from eaglebench.records.observation import StepTimes
from eaglebench.stats.throughput import (
    LEAST_PASSES,
    estimate_ratio,
    pairs_needed,
    pass_log_ratios,
    smallest_effect,
)

TIMES = StepTimes(
    prefill_s=0, mixed_s=0, decode_s=1, prefill_steps=0, mixed_steps=0, decode_steps=1
)


def make_block(arm: str, number: int, block: int, wall_s: float) -> MeasuredBlock:
    """A hundred tokens in so many seconds."""
    return MeasuredBlock(
        cell_id="c",
        arm=arm,
        pass_index=number,
        block=block,
        order=0,
        question_ids=("q",),
        output_tokens=100,
        verify_steps=50,
        wall_s=wall_s,
        times=TIMES,
    )


def test_a_pair_is_a_pass_through_both_arms() -> None:
    """All blocks of a pass together; a pass that one arm did not finish is left out."""
    blocks = [
        make_block("radix", 0, 0, 1.0),
        make_block("radix", 0, 1, 3.0),
        make_block("no-cache", 0, 0, 2.0),
        make_block("no-cache", 0, 1, 2.0),
        make_block("radix", 1, 0, 1.0),
        make_block("no-cache", 1, 0, 2.0),
        make_block("radix", 2, 0, 1.0),
        make_block("radix", 3, 0, 1.0),
        make_block("no-cache", 3, 1, 1.0),
    ]

    assert pass_log_ratios(blocks, "c", "radix", "no-cache") == [0.0, pytest.approx(log(2))]


def test_one_stall_moves_the_estimate_little() -> None:
    """The trimmed mean of ten pairs leaves the worst one out."""
    calm = [0.01, 0.012, 0.011, 0.009, 0.01, 0.008, 0.012, 0.01, 0.011, 0.01]
    stalled = [*calm[:-1], -0.8]

    estimate, other = estimate_ratio(calm), estimate_ratio(stalled)

    assert estimate is not None
    assert other is not None
    assert abs(estimate.log_ratio - other.log_ratio) < 0.001


def test_too_few_pairs_have_no_interval() -> None:
    """None, not zero; equal pairs have one of width zero."""
    assert estimate_ratio([]) is None
    one = estimate_ratio([0.3])
    assert one is not None
    assert (one.half_width, one.sd, one.mde, one.drift) == (None, None, None, None)
    same = estimate_ratio([0.1] * 25)
    assert same is not None
    assert same.half_width == 0.0


def test_drift_is_seen() -> None:
    """From first to last pair."""
    estimate = estimate_ratio([0.001 * n for n in range(11)])

    assert estimate is not None
    assert estimate.drift == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("sd", "pairs"), [(0.005, LEAST_PASSES), (0.01, LEAST_PASSES), (0.02, 22), (0.03, 49)]
)
def test_pairs_for_two_per_cent(sd: float, pairs: int) -> None:
    """(2 z sigma / delta)^2, at least eight: the table of docs/methodology.md."""
    assert pairs_needed(sd, 0.02) == pairs


def test_more_pairs_show_smaller_effects() -> None:
    """About one over the square root."""
    assert smallest_effect(0.01, 16) > smallest_effect(0.01, 64) > smallest_effect(0.01, 16) / 2.5
