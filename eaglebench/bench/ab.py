"""Two versions of the code in processes that take turns: counts held together, times by pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

from eaglebench.bench.compare import pair_runs
from eaglebench.bench.versions import Version
from eaglebench.gate.policy import ALPHA
from eaglebench.gate.times import judge_processes
from eaglebench.plan.option import Notice
from eaglebench.plan.passes import PassRange
from eaglebench.records.verdict import Judgement
from eaglebench.stats.acceptance import speed
from eaglebench.stats.throughput import estimate_ratio
from eaglebench.store.run_folder import find_run

Key = tuple[str, str]
"""Cell and arm."""
Ratios = dict[Key, list[float]]
"""Log ratios of tokens a second, B to A, one a pair of processes."""


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
) -> Judgement:
    """Start A and B in turns (A B, B A, ...) with these arguments of `run`, and judge B.

    Counts of the newest runs are compared question by question, times over all pairs. Runs are
    kept in `folder`; processes get `environment`; `notice` is told after each pair how well the times are known.

    Raises:
        UsageError: a version ended with an error.
    """
    ratios: Ratios = {}
    sides = list(zip("ab", (a, b), strict=True))
    for number in range(1, pairs.number.most + 1):
        for side, version in sides if number % 2 else reversed(sides):
            options = (*arguments, "--progress", "none", "--output-dir", str(folder / side))
            version.run(["run", *options], environment)
        if _is_known(folder, number, pairs, ratios, notice):
            break
    before, after = (find_run(folder / side, "latest") for side in "ab")
    _, counted = pair_runs(before, after, {}, across_environments=False)
    return Judgement(
        candidate=f"B ({b.name})",
        baseline=f"A ({a.name})",
        findings=(*counted.findings, *judge_processes(ratios, pairs.allowed, ALPHA)),
        notes=(*counted.notes, f"runs are in {folder}"),
        commands=counted.commands,
    )


def _is_known(
    folder: Path, number: int, pairs: ProcessPairs, ratios: Ratios, notice: Notice
) -> bool:
    """Count in the newest pair of runs; whether the times are now known well enough."""
    before, after = (_rates(folder / side) for side in "ab")
    for key, rate in after.items():
        if key in before:
            ratios.setdefault(key, []).append(log(rate) - log(before[key]))
    widest = _widest(ratios)
    known = "" if widest is None else f", half-width {widest:.2%}"
    notice(f"pair {number} of {pairs.number.least} to {pairs.number.most}{known}")
    return number >= pairs.number.least and widest is not None and widest <= pairs.precision


def _widest(ratios: Ratios) -> float | None:
    """Half-width of the ratio that is known least; None where none has one yet."""
    estimates = (estimate_ratio(values) for values in ratios.values())
    widths = [e.half_width for e in estimates if e is not None and e.half_width is not None]
    return max(widths, default=None)


def _rates(root: Path) -> dict[Key, float]:
    """Tokens a second of the newest run."""
    blocks = find_run(root, "latest").blocks()
    keys = dict.fromkeys((block.cell_id, block.arm) for block in blocks)
    rates = {key: speed([b for b in blocks if (b.cell_id, b.arm) == key]) for key in keys}
    return {key: rate.tokens_per_s for key, rate in rates.items() if rate and rate.tokens_per_s}
