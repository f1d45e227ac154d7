"""What each planted fault costs, against the same cell without it."""

from eaglebench.contracts.faults import FAULTS
from eaglebench.contracts.knobs import base_arm
from eaglebench.report.cell_names import short_names
from eaglebench.report.document import ReportDocument
from eaglebench.report.phrases import (
    NO_VALUE,
    SHARE,
    number,
    other_difference,
    p_text,
    row_verdict,
)
from eaglebench.report.rows import Row
from eaglebench.report.text_table import TextTable

COLUMNS = (
    *("fault", "against", "verdict", "accept. length", "change"),
    *("turns that differ", "p(shorter)"),
)
ALIGNMENT = "lllrrrr"


def fault_table(document: ReportDocument) -> TextTable | None:
    """One row a cell and fault arm; None where no fault was switched on."""
    faulty = [row for row in document.rows if base_arm(row.arm) in FAULTS]
    if not faulty:
        return None
    cells = list(dict.fromkeys(row.cell_id for row in faulty))
    short, shared = short_names(cells)
    rows = [_texts(document, row) for row in faulty]
    is_one_cell = len(cells) == 1
    if not is_one_cell:
        names = dict(zip(cells, short, strict=True))
        rows = [(names[row.cell_id], *texts) for row, texts in zip(faulty, rows, strict=True)]
    return TextTable(
        id="faults",
        caption=f"What known faults cost ({cells[0] if is_one_cell else shared})",
        columns=COLUMNS if is_one_cell else ("cell", *COLUMNS),
        rows=tuple(rows),
        alignment=ALIGNMENT if is_one_cell else f"l{ALIGNMENT}",
        remarks=tuple(
            f"{name}: {fault.what} ({', '.join(fault.issues)})"
            for name, fault in FAULTS.items()
            if any(base_arm(row.arm) == name for row in faulty)
        ),
    )


def _texts(document: ReportDocument, row: Row) -> tuple[str, ...]:
    verdict = row_verdict(document, row) or NO_VALUE
    length = number(row.counts.acceptance_length, ".3f")
    difference = other_difference(row) or row.difference
    if difference is None:
        return (row.arm, NO_VALUE, verdict, length, NO_VALUE, NO_VALUE, NO_VALUE)
    differing = len(difference.pairs) - difference.count("identical")
    return (
        row.arm,
        difference.against,
        verdict,
        length,
        number(difference.acceptance, SHARE),
        f"{differing} of {len(difference.pairs)}",
        p_text(difference.p_value),
    )
