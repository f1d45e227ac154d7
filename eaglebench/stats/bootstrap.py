"""What a difference in acceptance length says about prompts that were not asked.

Questions are drawn again with both their arms (paired BCa, Efron 1987); the statistic is a
difference of ratios of sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglebench.records.snapshot import QuestionCounts
from eaglebench.stats.resampling import RESAMPLES, SEED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counted = NDArray[np.float64]

LEAST_QUESTIONS = 30
LEAST_STEPS = 50
"""Below so many questions, or verify steps a question, no claim about other prompts is made."""


@dataclass(frozen=True, slots=True)
class LengthInterval:
    """Relative change of the acceptance length, with a two-sided interval; all as shares."""

    change: float
    low: float
    high: float
    confidence: float

    @property
    def half_width(self) -> float:
        """Half of the interval."""
        return (self.high - self.low) / 2


def length_interval(
    candidate: Sequence[QuestionCounts], baseline: Sequence[QuestionCounts], alpha: float = 0.01
) -> LengthInterval | None:
    """Interval of the relative change over questions both have; None below two, or without steps."""
    import numpy as np  # noqa: PLC0415  # numpy and scipy are slow to import
    from scipy import stats  # noqa: PLC0415

    theirs = {question.question_id: question for question in baseline}
    pairs = [(mine, theirs[mine.question_id]) for mine in candidate if mine.question_id in theirs]
    table = np.array(
        [
            (mine.emitted, mine.verify_steps, other.emitted, other.verify_steps)
            for mine, other in pairs
            if mine.verify_steps and other.verify_steps
        ],
        dtype=float,
    )
    confidence = 1 - 2 * alpha
    if len(table) < 2:
        return None
    columns = (table[:, 0], table[:, 1], table[:, 2], table[:, 3])
    change = float(_change(*columns, axis=0))
    mine, other = table[:, :2], table[:, 2:]
    if np.array_equal(mine, other):
        return LengthInterval(0.0, 0.0, 0.0, confidence)
    found = stats.bootstrap(
        columns,
        _change,
        paired=True,
        vectorized=True,
        confidence_level=confidence,
        method="BCa",
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(SEED),
    )
    low, high = (float(bound) for bound in found.confidence_interval)
    if not (np.isfinite(low) and np.isfinite(high)):  # BCa has no answer for nearly equal samples
        low = high = change
    return LengthInterval(change, low, high, confidence)


@dataclass(frozen=True, slots=True)
class Length:
    """An acceptance length, and between what it would lie on other prompts.

    Attributes:
        value: tokens a verify step delivers, pooled.
        low, high: two-sided interval; both are `value` where it can't be said.
        num_questions: questions it is of.
    """

    value: float
    low: float
    high: float
    num_questions: int


def length_of(questions: Sequence[QuestionCounts], alpha: float = 0.01) -> Length | None:
    """The pooled length of one arm with its interval over questions; None without a verify step."""
    import numpy as np  # noqa: PLC0415
    from scipy import stats  # noqa: PLC0415

    table = np.array([(q.emitted, q.verify_steps) for q in questions if q.verify_steps], float)
    if not len(table):
        return None
    value = float(_length(table[:, 0], table[:, 1], axis=0))
    if len(table) < 2:
        return Length(value, value, value, len(table))
    found = stats.bootstrap(
        (table[:, 0], table[:, 1]),
        _length,
        paired=True,
        vectorized=True,
        confidence_level=1 - 2 * alpha,
        method="BCa",
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(SEED),
    )
    low, high = (float(bound) for bound in found.confidence_interval)
    if not (np.isfinite(low) and np.isfinite(high)):  # BCa has no answer for nearly equal samples
        low = high = value
    return Length(value, low, high, len(table))


def _length(emitted: "Counted", steps: "Counted", axis: int = -1) -> "Counted":
    length: Counted = emitted.sum(axis) / steps.sum(axis)
    return length


def _change(
    emitted: "Counted",
    steps: "Counted",
    other_emitted: "Counted",
    other_steps: "Counted",
    axis: int = -1,
) -> "Counted":
    length = emitted.sum(axis) / steps.sum(axis)
    other = other_emitted.sum(axis) / other_steps.sum(axis)
    change: Counted = length / other - 1
    return change
