"""Log-ratios of passes, their estimate, and what it takes to see a change."""

from math import log

import pytest

from eaglebench.records.measured import MeasuredBlock
from eaglebench.records.observation import StepTimes
from eaglebench.stats.spread import Spread
from eaglebench.stats.throughput import (
    LEAST_PASSES,
    estimate_ratio,
    hanging_together,
    pairs_needed,
    pass_log_ratios,
    passes_needed,
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


@pytest.mark.parametrize(("sd", "pairs"), [(0.005, LEAST_PASSES), (0.01, 11), (0.02, 44)])
def test_pairs_for_two_per_cent(sd: float, pairs: int) -> None:
    """2 (2 z sigma / delta)^2, at least eight: the table of docs/methodology.md."""
    assert pairs_needed(sd, 0.02) == pairs


def test_passes_narrow_an_interval_by_their_root() -> None:
    """Four times the passes for half the width, and never fewer than there were."""
    assert passes_needed(16, 0.02, 0.01) == 64
    assert passes_needed(8, 0.0101, 0.01) == 9


def test_more_passes_show_smaller_effects() -> None:
    """About one over the square root."""
    few, many = (estimate_ratio([0.01, -0.01] * count) for count in (8, 32))

    assert few is not None
    assert many is not None
    assert few.mde is not None
    assert many.mde is not None
    assert few.mde > many.mde > few.mde / 2.5


def test_parts_of_a_spread_add_up() -> None:
    """Welch and Satterthwaite: equal parts of n have twice the freedom of one."""
    both = Spread.of([(0.3, 7), (0.3, 7)])

    assert both.error == pytest.approx(0.3 * 2**0.5)
    assert both.freedom == pytest.approx(14)
    assert both.half_width(0.01) == pytest.approx(2.6245 * both.error, rel=1e-3)
    assert both.chance(-both.half_width(0.01)) == pytest.approx(0.01)
    assert Spread.of([]).half_width(0.01) == 0.0
    assert (Spread.of([]).chance(-0.1), Spread.of([]).chance(0.0)) == (0.0, 1.0)


def test_passes_that_hang_together_are_worth_fewer() -> None:
    """A slow wave over forty passes; passes that go up and down are worth one each."""
    wave = [0.01 * (number // 10 % 2) for number in range(40)]

    assert hanging_together(wave) > 5
    assert hanging_together([0.01, -0.01] * 20) == 1.0
    assert hanging_together([0.01] * 8) == 1.0
