"""The matrix of a run: cells down, arms across."""

from eaglebench.records.faults import FAULTS
from eaglebench.records.knobs import base_arm
from eaglebench.report.cell_names import CellNames
from eaglebench.report.document import ReportDocument
from eaglebench.report.fault_table import fault_shows, planted_fault
from eaglebench.report.phrases import SEEN, cell_text
from eaglebench.report.rows import Row
from eaglebench.report.table import Column, Table

MATRIX = "matrix"
LEGEND = "acceptance length of every cell and arm; PASS is not written out"


def matrix_table(document: ReportDocument) -> Table | None:
    """Acceptance lengths, with the verdict where it is none to pass over.

    None for a run of one cell, or of one arm whose cells stand in a table of draft shapes.
    """
    names = CellNames(row.cell_id for row in document.rows)
    arms = list(dict.fromkeys(row.arm for row in document.rows))
    if len(names.cells) < 2 or (len(arms) < 2 and document.sweeps):
        return None
    texts = {(row.cell_id, row.arm): _text(document, row) for row in document.rows}
    columns = (
        Column("cell", str),
        *(Column(arm, str, is_right=True, short=arm.replace("-", "-\n")) for arm in arms),
    )
    rows = tuple(
        (names[cell_id], *(texts.get((cell_id, arm)) for arm in arms)) for cell_id in names.cells
    )
    return Table(
        name=MATRIX, title="Acceptance length", columns=columns, rows=rows, remarks=(LEGEND,)
    )


def _text(document: ReportDocument, row: Row) -> str:
    length = cell_text(row.counts.acceptance_length, "ratio")
    if base_arm(row.arm) in FAULTS:
        shows = fault_shows(planted_fault(document, row))
        mark = shows if shows == SEEN else None  # the rest is in the table of faults
    else:
        verdict = document.verdict_on(row)
        mark = None if verdict == "PASS" else verdict
    return f"{length} {mark}" if mark else length
