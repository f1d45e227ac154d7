"""The judge's intervals and verdicts, tried on worlds whose truth is known.

Every test states how often chance alone would turn it red. Simulated passes drift slowly, scatter,
and now and then stall, as shared machines do.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from eaglebench.gate.rule import decide
from eaglebench.records.snapshot import QuestionCounts
from eaglebench.stats.bootstrap import length_interval
from eaglebench.stats.throughput import estimate_ratio

TRIALS = 400
ALPHA = 0.01


def passes(
    rng: np.random.Generator, count: int, change: float, sigma: float
) -> NDArray[np.float64]:
    """Log-ratios of interleaved passes: noise of both arms, and one stall in forty."""
    scatter = rng.normal(0, sigma / 2**0.5, (2, count))
    stalls = rng.random((2, count)) < 1 / 40
    scatter -= stalls * rng.exponential(0.1, (2, count))
    out: NDArray[np.float64] = np.log1p(change) + scatter[0] - scatter[1]
    return out


@pytest.mark.parametrize("count", [8, 16, 30])
def test_the_throughput_interval_covers_the_truth(count: int) -> None:
    """Two-sided 98 % intervals miss in at most 5 % of 400 worlds.

    If they missed in 2 % as they should, more than 20 of 400 would miss once in 6 000 runs; the
    seed is fixed, so the test does not depend on luck.
    """
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(TRIALS):
        estimate = estimate_ratio(passes(rng, count, 0.0, 0.01).tolist(), ALPHA)
        assert estimate is not None
        assert estimate.half_width is not None
        missed += abs(estimate.log_ratio) > estimate.half_width

    assert missed <= 0.05 * TRIALS


@pytest.mark.parametrize(("change", "least", "most"), [(0.0, 0, 0.02), (-0.05, 0.95, 1.0)])
def test_slow_downs_are_called_and_noise_is_not(change: float, least: float, most: float) -> None:
    """With 2 % allowed, no change is called regressed in at most 2 % of worlds, -5 % in 95 %.

    Sigma is 1 %, pairs at most 40; expected are 1 % and nearly all.
    """
    rng = np.random.default_rng(2)
    regressed = sum(_verdict(rng, change) == "REGRESSED" for _ in range(TRIALS))

    assert least * TRIALS <= regressed <= most * TRIALS


def _verdict(rng: np.random.Generator, change: float) -> str:
    """Passes are added until the interval is narrow enough, never until it is significant."""
    values = passes(rng, 40, change, 0.01)
    for count in range(8, 41, 4):
        estimate = estimate_ratio(values[:count].tolist(), ALPHA)
        assert estimate is not None
        verdict = decide(estimate.change, estimate.half_width, 0.02)
        if verdict != "INCONCLUSIVE":
            return verdict
    return "INCONCLUSIVE"


def questions(
    rng: np.random.Generator, loss: float
) -> tuple[list[QuestionCounts], list[QuestionCounts]]:
    """Eighty questions of two arms: the same tokens, and now and then one verify step more."""
    arms: tuple[list[QuestionCounts], list[QuestionCounts]] = ([], [])
    for number in range(80):
        steps = int(rng.integers(60, 140))
        emitted = int(steps * rng.normal(2.1, 0.3))
        for arm, more in zip(arms, (int(rng.binomial(steps, loss)), 0), strict=True):
            question = QuestionCounts(
                question_id=f"q{number}",
                emitted=emitted,
                verify_steps=steps + more,
                output_sha="0" * 8,
                accept_sha="0" * 8,
            )
            arm.append(question)
    return arms


def test_the_length_interval_covers_the_truth() -> None:
    """Paired BCa over questions: 98 % intervals miss in at most 6 % of 150 worlds.

    At the nominal 2 % more than 9 of 150 would miss once in 1 000 runs; the seed is fixed.
    """
    rng = np.random.default_rng(3)
    loss, missed = 0.02, 0
    for _ in range(150):
        interval = length_interval(*questions(rng, loss), ALPHA)
        assert interval is not None
        missed += not interval.low <= 1 / (1 + loss) - 1 <= interval.high

    assert missed <= 0.06 * 150


def test_pairing_makes_the_interval_narrow() -> None:
    """A loss of two per cent stands out, though questions differ by thirty."""
    interval = length_interval(*questions(np.random.default_rng(4), 0.02), ALPHA)

    assert interval is not None
    assert interval.high < 0
    assert interval.half_width < 0.006
