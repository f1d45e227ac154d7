"""Throughput of one arm against another over repeated passes.

A pair is one pass over the questions through both arms, block by block in turn; its log-ratio is
ln(tok/s of the arm) - ln(tok/s of the other). The estimate is the 10 % trimmed mean with Tukey and
McLaughlin's interval. It says how passes of one run scatter, not how far a whole run is off.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, expm1, log

from eaglebench.records.measured import MeasuredBlock
from eaglebench.stats.acceptance import by_arm
from eaglebench.stats.spread import Spread

ALPHA = 0.01
LEAST_PASSES = 8
"""An exact sign-flip test needs seven pairs to reach p < 0.01."""
TRIMMED = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioEstimate:
    """A throughput ratio in logs.

    Attributes:
        log_ratio: trimmed mean of the pairs' log-ratios.
        half_width: one-sided half-width at level `ALPHA`; None with fewer than two pairs.
        error: standard error of `log_ratio`; None with fewer than two pairs.
        sd: standard deviation of one pair's log-ratio; None with fewer than two pairs.
        passes: how many there are, one a pass (or a pair of processes).
        drift: change of the log-ratio from first to last pair, by Theil and Sen; None below eight.
    """

    log_ratio: float
    half_width: float | None
    error: float | None
    sd: float | None
    passes: int
    drift: float | None

    @property
    def change(self) -> float:
        """Relative change of the throughput."""
        return expm1(self.log_ratio)

    @property
    def mde(self) -> float | None:
        """Smallest true change that so many passes detect with 80 % power at level `ALPHA`."""
        if self.error is None:
            return None
        return Spread(self.error, _freedom(self.passes)).smallest_effect(ALPHA)


def pass_log_ratios(
    blocks: Sequence[MeasuredBlock], cell_id: str, arm: str, other: str
) -> list[float]:
    """One log-ratio for each pass in which both arms ran the same blocks."""
    arms = by_arm(blocks)
    return paired_log_ratios(arms.get((cell_id, arm), []), arms.get((cell_id, other), []))


def paired_log_ratios(
    blocks: Sequence[MeasuredBlock], others: Sequence[MeasuredBlock]
) -> list[float]:
    """The same for the blocks of two arms, of one cell or of two whose passes take turns."""
    mine, theirs = _passes(blocks), _passes(others)
    return [
        log(_rate(mine[number])) - log(_rate(theirs[number]))
        for number in sorted(mine)
        if number in theirs
        and mine[number].keys() == theirs[number].keys()
        and _rate(mine[number]) > 0
        and _rate(theirs[number]) > 0
    ]


def log_rates(blocks: Sequence[MeasuredBlock]) -> list[float]:
    """Ln of the tokens a second of each pass of one arm."""
    rates = [_rate(one_pass) for _, one_pass in sorted(_passes(blocks).items())]
    return [log(rate) for rate in rates if rate > 0]


def estimate_ratio(log_ratios: Sequence[float], alpha: float = ALPHA) -> RatioEstimate | None:
    """The estimate; None without a pair."""
    import numpy as np  # noqa: PLC0415  # numpy and scipy are slow to import
    from scipy import stats  # noqa: PLC0415

    values = np.asarray(log_ratios, dtype=float)
    count = len(values)
    if not count:
        return None
    centre = float(stats.trim_mean(values, TRIMMED))
    if count == 1:
        return RatioEstimate(
            log_ratio=centre, half_width=None, error=None, sd=None, passes=1, drift=None
        )
    drift = None
    if count >= LEAST_PASSES:
        drift = float(stats.theilslopes(values)[0]) * (count - 1)
    # of equal values masked arrays make no number, and there is nothing to estimate
    is_flat = values.min() == values.max()
    error = 0.0 if is_flat else float(stats.mstats.trimmed_stde(values, (TRIMMED, TRIMMED)))
    error *= hanging_together(values.tolist()) ** 0.5
    return RatioEstimate(
        log_ratio=centre,
        half_width=Spread(error, _freedom(count)).half_width(alpha),
        error=error,
        sd=float(values.std(ddof=1)),
        passes=count,
        drift=drift,
    )


def hanging_together(log_ratios: Sequence[float]) -> float:
    """How many passes are worth one of their own, where a pass is like the one before it.

    (1 + r) / (1 - r) with the correlation r of neighbours, if it is more than chance makes of
    passes on their own (two of its standard errors, 1 / sqrt(n)); Priestley 1981, section 5.3.
    """
    import numpy as np  # noqa: PLC0415
    from scipy import stats  # noqa: PLC0415

    kept = np.asarray(stats.mstats.winsorize(np.asarray(log_ratios), (TRIMMED, TRIMMED)))
    apart = kept - kept.mean()
    variance = float((apart**2).sum())
    if not variance:
        return 1.0
    r = float((apart[1:] * apart[:-1]).sum()) / variance
    return (1 + r) / (1 - r) if r > 2 / len(kept) ** 0.5 else 1.0


def passes_needed(passes: int, half_width: float, wanted: float) -> int:
    """Passes that narrow an interval of so many to `wanted`: it shrinks with their root."""
    return max(LEAST_PASSES, ceil(passes * (half_width / wanted) ** 2))


def pairs_needed(sd: float, change: float, alpha: float = ALPHA) -> int:
    """Passes of each of two runs whose joint half-width is at most half of `change`.

    2 (2 z sd / change)^2, since both runs scatter; at least eight.
    """
    from scipy import stats  # noqa: PLC0415

    quantile = float(stats.norm.ppf(1 - alpha))
    return max(LEAST_PASSES, ceil(2 * (2 * quantile * sd / change) ** 2))


def _freedom(passes: int) -> int:
    """Degrees of freedom of a trimmed mean: values that were kept, less one."""
    return max(passes - 2 * int(TRIMMED * passes) - 1, 1)


def _passes(blocks: Sequence[MeasuredBlock]) -> dict[int, dict[int, MeasuredBlock]]:
    passes: dict[int, dict[int, MeasuredBlock]] = {}
    for block in blocks:
        passes.setdefault(block.pass_index, {})[block.block] = block
    return passes


def _rate(one_pass: dict[int, MeasuredBlock]) -> float:
    wall_s = sum(block.wall_s for block in one_pass.values())
    tokens = sum(block.output_tokens for block in one_pass.values())
    return tokens / wall_s if wall_s > 0 else 0.0
