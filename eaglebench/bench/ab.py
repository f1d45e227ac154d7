"""Two versions of the code in processes that take turns: counts held together, times by pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from statistics import fmean

from eaglebench.bench.compare import TIMES, pair_runs
from eaglebench.bench.stored_run import Run
from eaglebench.bench.versions import Version
from eaglebench.clock import Clock, MonotonicClock
from eaglebench.gate.policy import ALPHA
from eaglebench.gate.times import judge_processes
from eaglebench.plan.option import Notice
from eaglebench.plan.passes import PassRange
from eaglebench.records.verdict import Judgement
from eaglebench.report.side_by_side import PairedRow
from eaglebench.stats.acceptance import speed
from eaglebench.stats.throughput import LEAST_PASSES, estimate_ratio
from eaglebench.store.run_folder import find_run

Key = tuple[str, str]
"""Cell and arm."""
Rates = dict[Key, list[tuple[float, float]]]
"""Tokens a second of A and of B, one a pair of processes."""
_MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPairs:
    """How many pairs of processes are started.

    Attributes:
        number: least and most pairs.
        precision: half-width of the 95 % interval of a ratio at which no more are started.
        allowed: share of throughput that may be lost.
    """

    number: PassRange
    precision: float
    allowed: float


def compare_versions(
    a: Version,
    b: Version,
    arguments: Sequence[str],
    folder: Path,
    pairs: ProcessPairs,
    *,
    environment: Mapping[str, str],
    notice: Notice,
    clock: Clock | None = None,
) -> tuple[list[PairedRow], Judgement]:
    """Start A and B in turns (A B, B A, ...) with these arguments of `run`, and judge B.

    Returns lengths and rates of every cell and arm, and the verdicts. Counts of the newest runs are
    compared question by question, times over all pairs. Runs are kept in `folder`; processes get
    `environment`; `notice` is told after each pair how well the times are known and how long the
    least number of pairs will take.

    Raises:
        UsageError: a version ended with an error.
    """
    rates: Rates = {}
    clock = clock or MonotonicClock()
    started_s = clock.now_s()
    sides = list(zip("ab", (a, b), strict=True))
    for number in range(1, pairs.number.most + 1):
        for side, version in sides if number % 2 else reversed(sides):
            options = (*arguments, "--progress", "none", "--output-dir", str(folder / side))
            version.run(["run", *options], environment)
        widest = _take(folder, rates)
        left_s = (pairs.number.least - number) * (clock.now_s() - started_s) / number
        notice(_progress_text(number, pairs, widest, left_s))
        if number >= pairs.number.least and widest is not None and widest <= pairs.precision:
            break
    before, after = (Run(find_run(folder / side, "latest")) for side in "ab")
    rows, counted = pair_runs(before, after, {}, across_environments=False)
    rows = [replace(row, rates=_means(rates.get((row.cell_id, row.arm)))) for row in rows]
    return rows, Judgement(
        candidate=f"B ({b.name})",
        baseline=f"A ({a.name})",
        findings=(*counted.findings, *judge_processes(_ratios(rates), pairs.allowed, ALPHA)),
        notes=(*(n for n in counted.notes if n != TIMES), f"runs are in {folder}"),
        commands=counted.commands,
    )


def _take(folder: Path, rates: Rates) -> float | None:
    """Count in the newest pair of runs; the half-width of the ratio that is known least."""
    before, after = (_rates(folder / side) for side in "ab")
    for key, rate in after.items():
        if key in before:
            rates.setdefault(key, []).append((before[key], rate))
    estimates = (estimate_ratio(values) for values in _ratios(rates).values())
    widths = [e.half_width for e in estimates if e is not None and e.half_width is not None]
    return max(widths, default=None)


def _progress_text(number: int, pairs: ProcessPairs, widest: float | None, left_s: float) -> str:
    text = f"pair {number} of {pairs.number.least} to {pairs.number.most}"
    if widest is not None and number >= LEAST_PASSES:
        text += f", half-width {widest:.2%}"
    if left_s > 0:
        text += f", {left_s / _MINUTE_S:.1f} minutes or more to go"
    return text


def _ratios(rates: Rates) -> dict[Key, list[float]]:
    """Log ratios of B to A."""
    return {key: [log(b) - log(a) for a, b in pairs] for key, pairs in rates.items()}


def _means(pairs: Sequence[tuple[float, float]] | None) -> tuple[float, float] | None:
    return (fmean(a for a, _ in pairs), fmean(b for _, b in pairs)) if pairs else None


def _rates(root: Path) -> dict[Key, float]:
    """Tokens a second of the newest run."""
    blocks = find_run(root, "latest").blocks()
    keys = dict.fromkeys((block.cell_id, block.arm) for block in blocks)
    rates = {key: speed([b for b in blocks if (b.cell_id, b.arm) == key]) for key in keys}
    return {key: rate.tokens_per_s for key, rate in rates.items() if rate and rate.tokens_per_s}
