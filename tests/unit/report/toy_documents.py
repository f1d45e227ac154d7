"""Documents of toy runs, for tests of the formats."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

from eaglebench.gate.decide import judge_run
from eaglebench.plan.conversation import Conversation
from eaglebench.records.verdict import Finding, Judgement
from eaglebench.report.document import ReportDocument
from eaglebench.report.rows import Row, make_rows
from eaglebench.stats.acceptance import pool
from eaglebench.stats.sweep import make_sweeps
from eaglebench.stats.tau import Tau
from eaglebench.stats.throughput import RatioEstimate
from eaglebench.store.decode import measured_run
from tests.fakes import NOISE, Plant, ScriptedRuntime
from tests.sessions import make_folder, make_session, make_talk, make_talks

TAU = Tau(target=10 * NOISE, draft=10 * NOISE)
CELL = "page1-chunkoff-topk1-steps2-draft3"
ODD_NAME = "a|b\n<x> `ü` \x01*"
"""A name that would break a table, a line, a tag, a fence or an XML file."""


def make_document(
    root: Path,
    *,
    plants: Mapping[str, Sequence[Plant]] | None = None,
    talks: Sequence[Conversation] | None = None,
    notes: Sequence[str] = (),
    **options: Any,
) -> ReportDocument:
    """A toy run, judged by its own `no-cache` arm."""
    folder = make_folder(root)
    folder.write_environment(
        {
            "exact": {"torch": "2.11.0", "dtype": "float32", "device": "cpu", "num_threads": 2},
            "timing": {"cpu": "Toy 3000", "cores": 2},
            "info": {"host": "0123"},
        }
    )
    asked = talks or [*make_talks(3), make_talk("odd", "Please do the odd thing.")]
    make_session(ScriptedRuntime(plants), folder, asked, **options).run()
    run = measured_run(folder)
    rows = tuple(make_rows(run.turns, run.blocks, TAU))
    inside = {(row.cell_id, row.arm): row.difference for row in rows if row.difference}
    judgement = judge_run(run.run_id, inside)
    return ReportDocument(run=run, rows=rows, judgement=judgement, notes=tuple(notes))


def with_sweeps(document: ReportDocument) -> ReportDocument:
    """The document with its draft shapes side by side."""
    sweeps = make_sweeps(document.run.turns, document.run.blocks)
    return replace(document, sweeps=tuple(sweeps))


def with_rows(document: ReportDocument, rows: Sequence[Row]) -> ReportDocument:
    """The document with other rows."""
    return replace(document, rows=tuple(rows))


def with_findings(document: ReportDocument, *findings: Finding) -> ReportDocument:
    """The document with another judgement, against a baseline."""
    judgement = Judgement(candidate=document.run.run_id, baseline="last-release", findings=findings)
    return replace(document, judgement=judgement)


def with_ratio(document: ReportDocument, factor: float) -> ReportDocument:
    """As if every arm had run at `factor` times the speed of others, over eight passes."""
    ratio = RatioEstimate(
        log_ratio=log(factor), half_width=0.01, sd=0.02, passes=8, error=0.004, drift=0.003
    )
    rows = [
        replace(row, differences=tuple(replace(d, ratio=ratio) for d in row.differences))
        for row in document.rows
    ]
    return with_rows(document, rows)


def without_speed(document: ReportDocument) -> ReportDocument:
    """As if nothing had been timed."""
    rows = [
        replace(
            row,
            speed=None,
            differences=tuple(
                replace(d, throughput=None, log_ratio=None, ratio=None) for d in row.differences
            ),
        )
        for row in document.rows
    ]
    return with_rows(document, rows)


def without_turns(document: ReportDocument) -> ReportDocument:
    """As if every question had failed."""
    rows = [
        replace(row, num_questions=0, counts=pool(()), by_position=(), differences=())
        for row in without_speed(document).rows
    ]
    return with_rows(document, rows)


def in_cells(document: ReportDocument, *cell_ids: str) -> ReportDocument:
    """The same rows and findings once more in each of these cells."""
    rows = [replace(row, cell_id=cell_id) for cell_id in cell_ids for row in document.rows]
    findings = tuple(
        replace(finding, cell_id=cell_id)
        for cell_id in cell_ids
        for finding in document.judgement.findings
    )
    judgement = replace(document.judgement, findings=findings)
    return replace(document, rows=tuple(rows), judgement=judgement)
