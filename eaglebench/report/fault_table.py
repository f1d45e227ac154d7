"""What each planted fault costs, against the same cell without it."""

from collections.abc import Sequence

from eaglebench.records.faults import FAULTS
from eaglebench.records.knobs import base_arm
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
from eaglebench.stats.difference import Difference
from eaglebench.stats.prefix import count_other_drafts

COLUMNS = (
    *("fault", "verdict", "accept. length", "change"),
    *("turns that differ", "p", "other drafts"),
)
ALIGNMENT = "llrrrrr"
LEGEND = (
    "p = chance of so many more verify steps without a fault (paired sign-flip); other drafts = verify "
    "steps with other proposals, of those that begin with the same tokens"
)


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
        caption=_caption(faulty, cells[0] if is_one_cell else shared),
        columns=COLUMNS if is_one_cell else ("cell", *COLUMNS),
        rows=tuple(rows),
        alignment=ALIGNMENT if is_one_cell else f"l{ALIGNMENT}",
        remarks=(*_reproduced(faulty), LEGEND),
    )


def _caption(rows: Sequence[Row], where: str) -> str:
    """Against which arms, and in which cells."""
    names = sorted({found.against for row in rows if (found := _reference(row)) is not None})
    against = f" against {' or '.join(names)}" if names else ""
    return f"What known faults cost{against}" + (f" ({where})" if where else "")


def _reference(row: Row) -> Difference | None:
    """Against the same cache without the fault, or against `no-cache` where that did not run."""
    return other_difference(row) or row.difference


def _reproduced(rows: Sequence[Row]) -> list[str]:
    """What each of the faults does, and where it was reported."""
    shown = {base_arm(row.arm) for row in rows}
    return [
        f"{name}: {fault.what} ({', '.join(fault.issues)})"
        for name, fault in FAULTS.items()
        if name in shown
    ]


def _texts(document: ReportDocument, row: Row) -> tuple[str, ...]:
    verdict = row_verdict(document, row) or NO_VALUE
    length = number(row.counts.acceptance_length, ".3f")
    difference = _reference(row)
    if difference is None:
        return (row.arm, verdict, length, *(NO_VALUE,) * 4)
    mine, theirs = (
        [t for t in document.run.turns if (t.cell_id, t.arm, t.pass_index) == (row.cell_id, arm, 0)]
        for arm in (row.arm, difference.against)
    )
    drafts = count_other_drafts(mine, theirs)
    differing = len(difference.pairs) - difference.count("identical")
    return (
        row.arm,
        verdict,
        length,
        number(difference.acceptance, SHARE),
        f"{differing} of {len(difference.pairs)}",
        p_text(difference.p_value),
        f"{drafts.num_other} of {drafts.num_common}",
    )
