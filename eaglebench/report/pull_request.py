"""What goes under a pull request: the verdict and what a reviewer asks next, short or folded."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.records.verdict import BY_WEIGHT
from eaglebench.report.answer import headline, headline_words
from eaglebench.report.baseline_table import BASELINE, baseline_table
from eaglebench.report.cell_names import short_names
from eaglebench.report.document import ReportDocument
from eaglebench.report.escaping import markdown_text, one_line
from eaglebench.report.group_table import GROUPS
from eaglebench.report.markdown import bullets, pipe_table
from eaglebench.report.matrix_table import MATRIX as MATRIX_TABLE
from eaglebench.report.phrases import (
    AL_SGLANG,
    LENGTH,
    cell_text,
    environment_line,
    finding_text,
    heaviest_first,
    paste_lines,
    split_text,
    workload_text,
)
from eaglebench.report.row_tables import judged_table, runs_table
from eaglebench.report.rows import Row, by_cell
from eaglebench.report.table import Column, Table, make_table
from eaglebench.report.wider_tables import wider_tables

SHOWN_CELLS = 12
FOLDED_ROWS = 12
MOST_CHARACTERS = 5800
"""Of the comment on several cells: a screen or two. A comment of GitHub's ends at 65536."""
_BREAK = 2
_COUNT_LINE = 40
MATRIX = (
    f"acceptance length, its change against {BASELINE_ARM}, and the verdict where it is no PASS"
)
FOLDED_COLUMNS = ("cell", "arm", "token/s", f"throughput against {BASELINE_ARM}")
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
    """The run in GitHub's Markdown, short enough for a comment.

    Of one cell everything stands open. Of several the matrix and the findings do, and the rest is
    folded, as far as `MOST_CHARACTERS` go.
    """
    bad = heaviest_first(f for f in document.judgement.findings if f.verdict != "PASS")
    notes = (*document.notes, *document.judgement.notes)
    findings = bullets(_cut([finding_text(f) for f in bad], SHOWN_FINDINGS))
    remarks = bullets(_cut([f"note: {note}" for note in notes], SHOWN_NOTES))
    end = [f"environment: {markdown_text(environment_line(document.run))}", LENGTHS]
    if len(by_cell(document.rows)) > 1:
        head = [_first_line(document), *_matrix(document), findings]
        folded = [*_folded(document, _fold("Notes", [remarks] if remarks else []))]
        parts = [*head, *_fitting(folded, MOST_CHARACTERS - len("\n\n".join([*head, *end]))), *end]
    else:
        parts = [
            _first_line(document),
            _block(paste_lines(document.rows)),
            *_cell(document),
            *_tables(document),
            *(findings, remarks, *end),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _first_line(document: ReportDocument) -> str:
    where = f"{workload_text(document)}, run {document.run.run_id}"
    words = markdown_text(headline_words(document))
    return f"**{markdown_text(headline(document))}** {words} - {markdown_text(where)}"


def _block(lines: Sequence[str]) -> str:
    """A fenced block; the fence is longer than any run of backticks inside."""
    shown = [one_line(line) for line in lines]
    longest = max((len(ticks) for line in shown for ticks in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence, *shown, fence])


def _cell(document: ReportDocument) -> list[str]:
    """The table of the only cell and its throughput; nothing of a run without rows."""
    rows = document.rows
    if not rows:
        return []
    against = baseline_table(document)
    if against is not None:  # the verdict is on this, so numbers against another arm step back
        return [pipe_table(against), bullets(_splits(rows))]
    return [pipe_table(judged_table(document, rows, *SHOWN_COLUMNS)), bullets(_splits(rows))]


def _matrix(document: ReportDocument) -> list[str]:
    """Cells down and arms across; of very many cells, those with the heaviest verdicts."""
    cells = by_cell(document.rows)
    order = {cell_id: _weight(document, rows) for cell_id, rows in cells.items()}
    shown = set(sorted(cells, key=order.__getitem__)[:SHOWN_CELLS])
    names, shared = short_names(list(cells))
    short = dict(zip(cells, names, strict=True))
    arms = dict.fromkeys(row.arm for row in document.rows)
    columns = [
        Column("cell", lambda cell_id: short[cell_id]),
        *(Column(arm, partial(_matrix_cell, document, cells, arm)) for arm in arms),
    ]
    table = make_table(columns, [cell_id for cell_id in cells if cell_id in shown])
    legend = MATRIX.replace(BASELINE_ARM, "the baseline") if document.against else MATRIX
    parts = [_tight(pipe_table(table)), f"{legend}{f' ({shared})' if shared else ''}"]
    if len(cells) > SHOWN_CELLS:
        hidden = len(cells) - SHOWN_CELLS
        parts.append(f"{hidden} more cells, with no heavier verdict: see the report.")
    return parts


def _matrix_cell(
    document: ReportDocument, cells: Mapping[str, Sequence[Row]], arm: str, cell_id: str
) -> str | None:
    """Length, change and, where it is no pass, the verdict of a cell and arm."""
    row = next((row for row in cells[cell_id] if row.arm == arm), None)
    if row is None:
        return None
    verdict = document.verdict_on(row)
    change = row.difference.acceptance if row.difference is not None else None
    if document.against:
        place = (cell_id, arm)
        change = next((a.change for a in document.against if (a.cell_id, a.arm) == place), None)
    words = [
        cell_text(row.counts.acceptance_length, "ratio"),
        *([cell_text(change, "change")] if change is not None else []),
        *([verdict] if verdict not in {None, "PASS"} else []),
    ]
    return " ".join(filter(None, words))


def _folded(document: ReportDocument, notes: str) -> Iterator[str]:
    """What is folded, the most asked for first."""
    rows = document.rows
    names, _ = short_names(list(by_cell(rows)))
    short = dict(zip(by_cell(rows), names, strict=True))
    for table in wider_tables(document):
        if table.name in {MATRIX_TABLE, GROUPS}:
            continue  # the one stands open, the other in the report
        yield _fold(table.title, [_tight(pipe_table(table, FOLDED_ROWS)), *_cut_rows(table)])
    speeds = [replace(row, cell_id=short[row.cell_id]) for row in rows]
    yield _fold("Times", [_tight(pipe_table(runs_table(speeds, *FOLDED_COLUMNS)))])
    yield notes
    yield _fold("Lines to paste", [_block(paste_lines(speeds))])


def _cut_rows(table: Table) -> list[str]:
    hidden = len(table.rows) - FOLDED_ROWS
    return [f"{hidden} more rows: see the report"] if hidden > 0 else []


def _fold(title: str, parts: Sequence[str]) -> str:
    """Parts under a title that opens them; GitHub wants an empty line around Markdown."""
    if not parts:
        return ""
    inside = "\n\n".join(parts)
    return f"<details><summary>{markdown_text(title)}</summary>\n\n{inside}\n\n</details>"


def _fitting(parts: Iterable[str], room: int) -> list[str]:
    """Parts as long as there is room; what has none is counted."""
    shown, hidden = [], 0
    for part in filter(None, parts):
        if len(part) + _BREAK > room - _COUNT_LINE:
            hidden += 1
            continue
        shown.append(part)
        room -= len(part) + _BREAK
    return [*shown, *([f"{hidden} more tables: see the report."] if hidden else [])]


def _tight(table: str) -> str:
    """A table without what only lines columns up."""
    lines = [re.sub(r" {2,}(?=\|)|(?<=\|) {2,}", " ", line) for line in table.splitlines()]
    lines[1:2] = [re.sub("-{2,}", "-", line) for line in lines[1:2]]
    return "\n".join(lines)


def _tables(document: ReportDocument) -> list[str]:
    """Draft shapes, allocation and faults, as far as the run has them."""
    parts = []
    tables = [table for table in wider_tables(document) if table.name not in {GROUPS, BASELINE}]
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
