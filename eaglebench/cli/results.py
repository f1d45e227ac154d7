"""Stored runs as values: rows for tables, snapshots for the gate, documents for reports."""

from collections.abc import Sequence

from eaglebench.contracts.measured import MeasuredRun
from eaglebench.errors import NothingMeasuredError
from eaglebench.gate.decide import ArmDifferences, judge_run
from eaglebench.report.document import ReportDocument
from eaglebench.report.notes import (
    capacity_notes,
    context_notes,
    failure_notes,
    head_notes,
    pressure_notes,
    run_notes,
    sampling_notes,
    text_notes,
    window_notes,
)
from eaglebench.report.rows import Row, make_rows
from eaglebench.stats.pairing import Tau
from eaglebench.stats.sweep import make_sweeps
from eaglebench.store.decode import measured_run
from eaglebench.store.run_folder import RunFolder


def load_run(folder: RunFolder) -> MeasuredRun:
    """A run that holds at least one finished turn.

    Raises:
        NothingMeasuredError: it holds none.
        InputFileError: its files are broken.
    """
    run = measured_run(folder)
    if not run.turns:
        raise NothingMeasuredError(
            f"run {folder.run_id} holds no finished question",
            hint="eaglebench list shows the runs there are",
        )
    return run


def rows_of(run: MeasuredRun) -> list[Row]:
    """Rows of a run."""
    return make_rows(run.turns, run.blocks, tau_of(run))


def tau_of(run: MeasuredRun) -> Tau:
    """The near-tie thresholds a run measured for itself; 0 where it has none."""
    return Tau(target=run.tau.get("target", 0.0), draft=run.tau.get("draft", 0.0))


def inside_of(rows: Sequence[Row]) -> ArmDifferences:
    """Every arm against `no-cache` of the same run."""
    return {(row.cell_id, row.arm): row.difference for row in rows if row.difference is not None}


def load_document(folder: RunFolder) -> ReportDocument:
    """A run and the verdicts on its arms, for a report.

    Raises:
        NothingMeasuredError: it holds no finished turn.
    """
    run = load_run(folder)
    rows = rows_of(run)
    return ReportDocument(
        run=run,
        rows=tuple(rows),
        judgement=judge_run(run.run_id, inside_of(rows)),
        notes=tuple(notes_of(folder, run, rows)),
        sweeps=tuple(make_sweeps(run.turns, run.blocks)),
    )


def notes_of(folder: RunFolder, run: MeasuredRun, rows: Sequence[Row]) -> list[str]:
    """Remarks on a run: what its numbers don't say by themselves."""
    page_sizes = sorted({turn.page_size for turn in run.turns})
    notes = run_notes(rows, page_sizes, run.models.get("warnings", ()))
    notes += failure_notes(run.turns)
    notes += capacity_notes(run.turns)
    notes += pressure_notes(rows)
    notes += context_notes(run.turns)
    notes += head_notes(run.models, run.turns)
    notes += text_notes(run.models, run.turns)
    notes += window_notes(run.models, run.config)
    notes += sampling_notes(run.config)
    notes += folder.notices()
    if run.status != "done":
        notes.append(f"this run is {run.status}: not every question has been run")
    repeated = _changed_rounds(run)
    if repeated:
        notes.append(f"rounds that did not repeat the first one: {', '.join(repeated)}")
    return notes


def _changed_rounds(run: MeasuredRun) -> list[str]:
    """Cells and arms in which the same question gave other tokens or steps in a later round."""
    first = {
        (turn.cell_id, turn.arm, turn.question_id, turn.turn): turn
        for turn in run.turns
        if turn.round == 0
    }
    changed: dict[str, None] = {}
    for turn in run.turns:
        other = first.get((turn.cell_id, turn.arm, turn.question_id, turn.turn))
        if other is not None and (turn.output_token_ids, turn.accepted_per_step) != (
            other.output_token_ids,
            other.accepted_per_step,
        ):
            changed[f"{turn.cell_id} {turn.arm} question {turn.question_id}"] = None
    return list(changed)
