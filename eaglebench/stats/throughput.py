"""Throughput of one arm against another over repeated passes.

A pair is one pass over the questions through both arms, block by block in turn; its log-ratio is
ln(tok/s of the arm) - ln(tok/s of the other). The estimate is the 10 % trimmed mean; its interval
is Tukey-McLaughlin's below twenty pairs and BCa from there on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log
from typing import Any

from eaglebench.records.measured import MeasuredBlock
from eaglebench.stats.acceptance import by_arm
from eaglebench.stats.resampling import RESAMPLES, SEED

ALPHA = 0.01
POWER = 0.8
LEAST_PASSES = 8
"""An exact sign-flip test needs seven pairs to reach p < 0.01."""
TRIMMED = 0.1
BCA_FROM = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioEstimate:
    """A throughput ratio in logs.

    Attributes:
        log_ratio: trimmed mean of the pairs' log-ratios.
        half_width: one-sided half-width at level `ALPHA`; None with fewer than two pairs.
        sd: standard deviation of one pair's log-ratio; None with fewer than two pairs.
        passes: how many there are, one a pass (or a pair of processes).
        drift: change of the log-ratio from first to last pair, by Theil and Sen; None below eight.
    """

    log_ratio: float
    half_width: float | None
    sd: float | None
    passes: int
    drift: float | None

    @property
    def change(self) -> float:
        """Relative change of the throughput."""
        return expm1(self.log_ratio)

    @property
    def mde(self) -> float | None:
        """Smallest true change that so many pairs detect with 80 % power at level `ALPHA`."""
        return None if self.sd is None else smallest_effect(self.sd, self.passes)


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
        return RatioEstimate(log_ratio=centre, half_width=None, sd=None, passes=1, drift=None)
    drift = None
    if count >= LEAST_PASSES:
        drift = float(stats.theilslopes(values)[0]) * (count - 1)
    return RatioEstimate(
        log_ratio=centre,
        half_width=_half_width(values.tolist(), alpha),
        sd=float(values.std(ddof=1)),
        passes=count,
        drift=drift,
    )


def smallest_effect(sd: float, pairs: int, alpha: float = ALPHA, power: float = POWER) -> float:
    """(t_{1-alpha} + t_{power}) * sd / sqrt(pairs), with pairs - 1 degrees of freedom."""
    from scipy import stats  # noqa: PLC0415

    freedom = max(pairs - 1, 1)
    quantiles = stats.t.ppf(1 - alpha, freedom) + stats.t.ppf(power, freedom)
    return float(quantiles * sd / pairs**0.5)


def pairs_needed(sd: float, change: float, alpha: float = ALPHA) -> int:
    """Pairs whose half-width is at most half of `change`: (2 z sd / change)^2, at least eight."""
    from math import ceil  # noqa: PLC0415

    from scipy import stats  # noqa: PLC0415

    quantile = float(stats.norm.ppf(1 - alpha))
    return max(LEAST_PASSES, ceil((2 * quantile * sd / change) ** 2))


def _half_width(values: list[float], alpha: float) -> float:
    import numpy as np  # noqa: PLC0415
    from scipy import stats  # noqa: PLC0415

    if min(values) == max(values):
        return 0.0
    if len(values) < BCA_FROM:
        low, high = stats.mstats.trimmed_mean_ci(
            np.asarray(values), limits=(TRIMMED, TRIMMED), alpha=2 * alpha
        )
    else:
        found = stats.bootstrap(
            (np.asarray(values),),
            _trimmed_mean,
            confidence_level=1 - 2 * alpha,
            vectorized=True,
            method="BCa",
            n_resamples=RESAMPLES,
            rng=np.random.default_rng(SEED),
        )
        low, high = found.confidence_interval
    return float(high - low) / 2


def _passes(blocks: Sequence[MeasuredBlock]) -> dict[int, dict[int, MeasuredBlock]]:
    passes: dict[int, dict[int, MeasuredBlock]] = {}
    for block in blocks:
        passes.setdefault(block.pass_index, {})[block.block] = block
    return passes


def _rate(one_pass: dict[int, MeasuredBlock]) -> float:
    wall_s = sum(block.wall_s for block in one_pass.values())
    tokens = sum(block.output_tokens for block in one_pass.values())
    return tokens / wall_s if wall_s > 0 else 0.0


def _trimmed_mean(sample: Any, axis: int = -1) -> Any:
    from scipy import stats  # noqa: PLC0415

    return stats.trim_mean(sample, TRIMMED, axis=axis)
