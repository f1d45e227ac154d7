"""One metric over the stored runs: where it changed, among runs that did the same work."""

from math import exp
from pathlib import Path

from eaglebench.errors import EaglebenchError, NothingMeasuredError
from eaglebench.gate.comparable import exact_differences, timing_differences, workload_differences
from eaglebench.gate.counts import value_of
from eaglebench.plan.options import workload_of
from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.records.snapshot import PPM, ArmCounts, Snapshot
from eaglebench.report.history_table import HistoryRow
from eaglebench.stats.metrics import THROUGHPUT, metric, relative_change
from eaglebench.stats.snapshot import make_snapshot
from eaglebench.store.decode import measured_run
from eaglebench.store.run_folder import RunFolder, list_runs


def history(
    root: Path,
    name: str,
    *,
    suite: str | None = None,
    cell: str | None = None,
    arms: tuple[str, ...] = (),
    last: int | None = None,
) -> list[HistoryRow]:
    """Rows of all readable runs, oldest first, cell by cell and arm by arm.

    Args:
        root: where runs are.
        name: a metric of the gate (`al`, `verify_steps`, ...); `throughput` is the ratio to `no-cache`.
        suite: that suite alone.
        cell: cells in whose name this stands.
        arms: these arms alone.
        last: so many of the newest runs.

    Raises:
        UsageError: there is no such metric.
        NothingMeasuredError: no run holds it.
    """
    known = metric(name)
    snapshots = [each for each in map(_snapshot, list_runs(root)) if each is not None]
    chosen = [s for s in snapshots if suite is None or s[1].suite == suite][-(last or 0) :]
    rows: list[HistoryRow] = []
    for place, (started, snapshot) in enumerate(chosen):
        for arm in snapshot.arms:
            if (arms and arm.arm not in arms) or (cell is not None and cell not in arm.cell_id):
                continue
            before = _before(chosen[:place], snapshot, arm, is_timed=not known.is_deterministic)
            value, old = _value(arm, name), None if before is None else _value(before, name)
            rows.append(
                HistoryRow(
                    run_id=snapshot.name,
                    started=started,
                    commit=snapshot.created_from,
                    suite=snapshot.suite,
                    cell_id=arm.cell_id,
                    arm=arm.arm,
                    value=value,
                    change=None if None in (value, old) else relative_change(old, value),  # type: ignore[arg-type]  # neither is None here
                    is_trusted=not any(doubt.is_fatal for doubt in arm.doubts),
                )
            )
    if not rows:
        raise NothingMeasuredError(
            f"no run in {root / 'runs'} holds what was asked for", hint="eaglebench list"
        )
    return rows


def _snapshot(folder: RunFolder) -> tuple[str, Snapshot] | None:
    """When a run began and its integers; None of one that can't be read or holds nothing."""
    try:
        run = measured_run(folder)
        return (run.started, make_snapshot(run, workload_of(run.config))) if run.turns else None
    except EaglebenchError:
        return None


def _before(
    earlier: list[tuple[str, Snapshot]], snapshot: Snapshot, arm: ArmCounts, *, is_timed: bool
) -> ArmCounts | None:
    """The same cell and arm in the newest earlier run of the same work and environment."""
    differences = timing_differences if is_timed else exact_differences
    for _, other in reversed(earlier):
        if workload_differences(snapshot, other) or differences(snapshot, other):
            continue
        theirs = {each.key: each for each in other.arms}.get(arm.key)
        if theirs is not None and {q.question_id for q in theirs.questions} == {
            q.question_id for q in arm.questions
        }:
            return theirs
    return None


def _value(arm: ArmCounts, name: str) -> float | None:
    if name != THROUGHPUT:
        return value_of(arm, name)
    if arm.arm == BASELINE_ARM or arm.noise is None:
        return None
    return exp(arm.noise.log_ratio_ppm / PPM)
