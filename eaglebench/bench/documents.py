"""Stored runs as values: rows for tables, snapshots for the gate, documents for reports."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from eaglebench.errors import NothingMeasuredError
from eaglebench.gate.cells import judge_cells
from eaglebench.gate.decide import ArmDifferences, judge_run
from eaglebench.records.doubt import Doubt
from eaglebench.records.faults import FAULTS
from eaglebench.records.flags import in_folder
from eaglebench.records.knobs import base_arm
from eaglebench.records.measured import MeasuredRun
from eaglebench.records.verdict import Finding, Judgement
from eaglebench.report.document import ReportDocument
from eaglebench.report.notes import (
    context_notes,
    head_notes,
    occupancy_notes,
    precision_notes,
    pressure_notes,
    run_notes,
    sampling_notes,
    text_notes,
    time_notes,
    window_notes,
)
from eaglebench.report.rows import Row, make_rows
from eaglebench.stats.cells import compare_cells
from eaglebench.stats.groups import make_groups
from eaglebench.stats.sweep import make_sweeps
from eaglebench.stats.tau import Tau
from eaglebench.stats.trust import doubts_of
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
            hint=f"eaglebench list{in_folder(folder.root)} shows the runs there are",
        )
    return run


def refuse_untrusted(run_id: str, doubts: Iterable[Doubt]) -> None:
    """Go on only with what can be trusted.

    Raises:
        NothingMeasuredError: it can't, and why.
    """
    fatal = [doubt.sentence for doubt in doubts if doubt.is_fatal]
    if fatal:
        raise NothingMeasuredError(f"run {run_id} can't be trusted: {'; '.join(fatal)}")


def rows_of(run: MeasuredRun) -> list[Row]:
    """Rows of a run."""
    return make_rows(run.turns, run.blocks, tau_of(run))


def tau_of(run: MeasuredRun) -> Tau:
    """The near-tie thresholds a run measured for itself; 0 where it has none."""
    return Tau.recorded(run.tau)


def inside_of(rows: Sequence[Row], playing: Collection[str] = ()) -> ArmDifferences:
    """Every arm against `no-cache` of the same run.

    Planted faults are there to be seen and are left out, unless they play another arm's part.
    """
    return {
        (row.cell_id, row.arm): row.difference
        for row in rows
        if row.difference is not None and (row.arm in playing or base_arm(row.arm) not in FAULTS)
    }


def load_document(folder: RunFolder) -> ReportDocument:
    """A run and the verdicts on its arms, for a report.

    Raises:
        NothingMeasuredError: it holds no finished turn.
    """
    return make_document(folder, load_run(folder))


def make_document(folder: RunFolder, run: MeasuredRun) -> ReportDocument:
    """The same of a run that has been read from this folder."""
    rows, doubts = rows_of(run), doubts_of(run)
    cells = compare_cells(run.turns, run.blocks, tau_of(run))
    judgement = judge_run(run.run_id, inside_of(rows), doubts)
    return ReportDocument(
        run=run,
        rows=tuple(rows),
        judgement=with_findings(judgement, judge_cells(cells)),
        notes=(*(doubt.sentence for doubt in doubts), *notes_of(folder, run, rows)),
        doubts=tuple(doubts),
        sweeps=tuple(make_sweeps(run.turns, run.blocks)),
        cells=tuple(cells),
        groups=tuple(make_groups(run.turns)),
    )


def with_findings(judgement: Judgement, findings: Iterable[Finding]) -> Judgement:
    """The judgement with more to weigh."""
    return replace(judgement, findings=(*judgement.findings, *findings))


def notes_of(folder: RunFolder, run: MeasuredRun, rows: Sequence[Row]) -> list[str]:
    """Remarks on a run: what its numbers don't say by themselves."""
    page_sizes = sorted({turn.knobs.page_size for turn in run.turns})
    notes = run_notes(rows, page_sizes, run.models.get("warnings", ()))
    notes += pressure_notes(run.turns)
    notes += precision_notes(rows, str(run.models.get("dtype")))
    notes += occupancy_notes(rows, run.blocks)
    notes += time_notes(rows, run.turns)
    notes += context_notes(run.turns)
    notes += head_notes(run.models, run.turns)
    notes += text_notes(run.models, run.turns)
    notes += window_notes(run.models, run.config)
    notes += sampling_notes(run.config)
    notes += folder.notices()
    return notes
