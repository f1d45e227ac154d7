"""What goes under a pull request: the verdict, the lines people know, one small table a cell."""

import re
from collections.abc import Sequence

from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.records.verdict import BY_WEIGHT
from eaglebench.report.document import ReportDocument
from eaglebench.report.escaping import markdown_text, one_line
from eaglebench.report.markdown import bullets, pipe_table
from eaglebench.report.phrases import (
    AL_SGLANG,
    LENGTH,
    VERDICT_WORDS,
    environment_line,
    finding_text,
    heaviest_first,
    paste_lines,
    split_text,
    workload_text,
)
from eaglebench.report.row_tables import judged_table
from eaglebench.report.rows import Row, by_cell
from eaglebench.report.wider_tables import wider_tables

SHOWN_CELLS = 12
"""A comment of GitHub's ends at 65536 characters."""
SHOWN_TABLES = 6
SHOWN_ROWS = 40
SHOWN_FINDINGS = 10
SHOWN_NOTES = 10
LENGTHS = f"{LENGTH}; `Acceptance length` of the `#questions` lines = {AL_SGLANG}"
SHOWN_COLUMNS = (
    *("arm", "acceptance length", f"length against {BASELINE_ARM}"),
    *(f"throughput against {BASELINE_ARM}", "verdict", "why"),
)


def render_pull_request(document: ReportDocument) -> str:
    """The run in GitHub's Markdown, short enough for a comment."""
    bad = heaviest_first(f for f in document.judgement.findings if f.verdict != "PASS")
    notes = (*document.notes, *document.judgement.notes)
    parts = [
        _first_line(document),
        _block(paste_lines(document.rows)),
        *_cells(document),
        *_tables(document),
        bullets(_cut([finding_text(f) for f in bad], SHOWN_FINDINGS)),
        bullets(_cut([f"note: {note}" for note in notes], SHOWN_NOTES)),
        f"environment: {markdown_text(environment_line(document.run))}",
        LENGTHS,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _first_line(document: ReportDocument) -> str:
    judgement = document.judgement
    against = f"against {markdown_text(judgement.baseline)}: {VERDICT_WORDS[judgement.verdict]}"
    where = f"{workload_text(document)}, run {document.run.run_id}"
    return f"**{judgement.verdict}** {against} - {markdown_text(where)}"


def _block(lines: Sequence[str]) -> str:
    """A fenced block; the fence is longer than any run of backticks inside."""
    shown = [one_line(line) for line in lines]
    longest = max((len(ticks) for line in shown for ticks in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence, *shown, fence])


def _cells(document: ReportDocument) -> list[str]:
    """A table a cell and its throughput; of very many cells, those with the heaviest verdicts."""
    cells = by_cell(document.rows)
    order = {cell_id: _weight(document, rows) for cell_id, rows in cells.items()}
    heaviest = sorted(cells, key=order.__getitem__)[:SHOWN_CELLS]
    parts = []
    for cell_id in [cell_id for cell_id in cells if cell_id in heaviest]:
        if len(cells) > 1:
            parts.append(f"**{markdown_text(cell_id)}**")
        parts.append(pipe_table(judged_table(document, cells[cell_id], *SHOWN_COLUMNS)))
        parts.append(bullets(_splits(cells[cell_id])))
    if len(cells) > SHOWN_CELLS:
        hidden = len(cells) - SHOWN_CELLS
        parts.append(f"Tables of {hidden} more cells, with no heavier verdict: see the report.")
    return parts


def _tables(document: ReportDocument) -> list[str]:
    """Draft shapes, allocation and faults, as far as the run has them."""
    parts = []
    tables = wider_tables(document)
    for table in tables[:SHOWN_TABLES]:
        parts += [f"**{markdown_text(table.title)}**", pipe_table(table, SHOWN_ROWS)]
        parts.append(bullets(_more(table.remarks, len(table.rows) - SHOWN_ROWS, "rows")))
    return [*parts, *_more((), len(tables) - SHOWN_TABLES, "tables")]


def _more(lines: Sequence[str], hidden: int, what: str) -> list[str]:
    return [*lines, f"{hidden} more {what}: see the report"] if hidden > 0 else [*lines]


def _weight(document: ReportDocument, rows: Sequence[Row]) -> int:
    verdicts = [document.verdict_on(row) for row in rows]
    return min((BY_WEIGHT.index(v) for v in verdicts if v is not None), default=len(BY_WEIGHT))


def _splits(rows: Sequence[Row]) -> list[str]:
    return [
        f"{row.arm} against {row.difference.against}: {sentence}"
        for row in rows
        if row.difference is not None and (sentence := split_text(row.difference))
    ]


def _cut(lines: list[str], limit: int) -> list[str]:
    hidden = len(lines) - limit
    return [*lines[:limit], f"and {hidden} more"] if hidden > 0 else lines
