"""Tables and sentences in a terminal: the one format that knows how to draw there."""

from collections.abc import Mapping, Sequence
from textwrap import fill

from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from eaglebench.records.faults import FAULTS
from eaglebench.records.knobs import BASELINE_ARM, base_arm
from eaglebench.records.verdict import Judgement
from eaglebench.report.answer import answer_lines, headline
from eaglebench.report.cell_names import CellNames
from eaglebench.report.document import ReportDocument
from eaglebench.report.explained_turn import (
    ExplainedTurn,
    cause_lines,
    explanation,
    marked_root,
    steps_table,
    turn_text,
)
from eaglebench.report.judgement_table import telling, verdicts_table
from eaglebench.report.matrix_table import MATRIX
from eaglebench.report.phrases import (
    ABOUT,
    BY_POSITION,
    LENGTH,
    NO_VALUE,
    advice_text,
    cell_text,
    difference_text,
    noise_text,
    parting_text,
    passes_text,
    paste_lines,
    speed_text,
    split_text,
    three_lengths,
    verdict_counts,
)
from eaglebench.report.reading_table import TokenText, reading_table
from eaglebench.report.row_tables import RUN_COLUMNS, held_rows
from eaglebench.report.rows import Row, by_cell
from eaglebench.report.side_by_side import PairedRow, noise_names, noise_table, runs_pair_table
from eaglebench.report.table import Column, Table, make_table
from eaglebench.report.wider_tables import wider_tables
from eaglebench.stats.difference import Difference
from eaglebench.stats.noise import Noise

WIDE = 120
SHOWN_PAIRS = 8
SHOWN_FINDINGS = 60
HEAD_WIDTH = 10
WORD_WIDTH = 16
"""Words up to this long stay on one line; numbers next to them give way."""
STYLES: Mapping[str, str] = {
    "PASS": "green",
    "REGRESSED": "bold red",
    "IMPROVED": "cyan",
    "INCONCLUSIVE": "yellow",
    "NOT_COMPARABLE": "magenta",
    "FAILED": "bold red",
}


def render_run(document: ReportDocument, console: Console, *, title: str) -> None:
    """Print the matrix, cells and arms, what differs, tables over the cells, notes, the answer."""
    rows, is_wide = document.rows, console.width >= WIDE
    tables = [table if is_wide else table.narrow() for table in wider_tables(document)]
    for table in tables:
        if table.name == MATRIX:
            _draw(table, console)
    _draw(_cells_and_arms(rows, title, is_wide=is_wide), console)
    console.print(Text(f"{LENGTH}; {BY_POSITION}", style="dim"))
    is_alone = len(by_cell(rows)) < 2
    for row in rows[:1] if is_alone else ():
        console.print(Text(three_lengths(row), style="dim"))
    for row, difference, _ in held_rows(rows):
        if is_alone or _is_telling(row, difference):
            _print_difference(row, difference, console)
    for table in tables:
        if table.name != MATRIX:
            _draw(table, console)
    _print_notes(document.notes, console)
    _print_paste_lines(document, console)
    _print_answer(document, console)


def render_paste_lines(document: ReportDocument, console: Console) -> None:
    """Print the lines that people know, one a cell and arm, and nothing else."""
    for line in paste_lines(document.rows):
        console.print(Text(line), soft_wrap=True)


def _cells_and_arms(rows: Sequence[Row], title: str, *, is_wide: bool) -> Table:
    """Every cell and arm; a cell is named by what varies."""
    names = CellNames(row.cell_id for row in rows)
    columns = _run_columns(is_wide=is_wide)
    if len(names.cells) > 1:
        if not is_wide:
            names_of = ("arm", "acceptance length", "token/s", "verify steps")
            columns = [*(RUN_COLUMNS[name] for name in names_of), columns[-1]]
        columns = [Column("cell", lambda row: names[row.cell_id]), *columns]
    shared = f" - {names.title}" if names.title else ""
    return make_table(columns, rows, title=f"{title}{shared}")


def _is_telling(row: Row, difference: Difference) -> bool:
    """Whether turns of a cell and arm differ, and no table of faults says so."""
    return base_arm(row.arm) not in FAULTS and any(
        pair.kind != "identical" for pair in difference.pairs
    )


def _print_paste_lines(document: ReportDocument, console: Console) -> None:
    """A line an arm: of the first cell, where there are several."""
    cells = by_cell(document.rows)
    console.print()
    for cell_id, rows in list(cells.items())[:1]:
        for line in paste_lines(rows):
            console.print(Text(line), soft_wrap=True)
        if len(cells) > 1:
            more = f"({cell_id}; of all {len(cells)} cells: eaglebench show {document.run.run_id} --paste)"
            console.print(Text(more, style="dim"), soft_wrap=True)


def _print_answer(document: ReportDocument, console: Console) -> None:
    """The verdict, then where to look; lines that are typed again are not broken."""
    verdict = headline(document)
    console.print()
    console.print(Text(verdict, style=STYLES.get(verdict, "bold")), end=" ")
    for line in answer_lines(document):
        console.print(Text(line), soft_wrap=True)


def render_judgement(judgement: Judgement, console: Console) -> None:
    """Print findings, the heaviest first, and the verdict over all of them."""
    shown = telling(judgement)
    _draw(verdicts_table(shown[:SHOWN_FINDINGS], is_wide=console.width >= WIDE), console)
    _print_hidden(len(shown) - SHOWN_FINDINGS, console)
    _print_notes(judgement.notes, console)
    for command in judgement.commands:
        console.print(Text(f"where and why: {command}"), soft_wrap=True)
    counts = verdict_counts(judgement) or "nothing judged"
    told = f" {judgement.candidate} against {judgement.baseline}: {counts}"
    # one text: rich wraps each as if it began at the left edge
    console.print(Text.assemble((judgement.verdict, STYLES[judgement.verdict]), told))


def render_run_pair(rows: Sequence[PairedRow], console: Console, *, title: str) -> None:
    """Print lengths, tiers and every exact counter that changed."""
    _draw(runs_pair_table(rows, title), console)


def render_table(table: Table, console: Console) -> None:
    """Print one table; where there is little room without the columns that can be missed."""
    _draw(table if console.width >= WIDE else table.narrow(), console)


def render_steps(found: ExplainedTurn, *, console: Console, text: TokenText) -> None:
    """Print the steps of a turn beside its twin's, where they part, what was read there, and why."""
    console.print(Text(turn_text(found)))
    _draw(steps_table(found, text), console, marked=marked_root(found))
    if found.other is not None and found.pair is not None:
        console.print(Text(explanation(found)))
    for label, reading in found.told_readings:
        _draw(reading_table(reading, label, text), console)
    for line in cause_lines(found, text):
        console.print(Text(line))


def render_noise(found: Sequence[tuple[str, Noise]], console: Console) -> None:
    """Print one line a dtype, cell and arm, then the lengths and the questions that flipped."""
    _draw(noise_table(found), console)
    for name, noise in zip(noise_names(found), (noise for _, noise in found), strict=True):
        console.print(Text(f"{name}: {noise_text(noise)}; {advice_text(noise)}"))


def _run_columns(*, is_wide: bool) -> list[Column]:
    names = ["arm", "acceptance length", "by position", "token/s"]
    counts = ["verify steps", "cached tokens", "prefilled tokens", "pages taken"]
    columns = [RUN_COLUMNS[name] for name in names + counts * is_wide]
    if not is_wide:
        columns.append(Column("steps / cached", _steps_and_cached, is_right=True))
    heading = f"against {BASELINE_ARM}\nlength, token/s"
    return [*columns, Column(heading, _against, is_right=True, short=heading)]


def _steps_and_cached(row: Row) -> str:
    counts = row.counts
    return f"{cell_text(counts.verify_steps, 'count')}\n{cell_text(counts.cached_tokens, 'count')}"


def _against(row: Row) -> str:
    found = row.difference
    if found is None:
        return NO_VALUE
    return f"{cell_text(found.acceptance, 'change')}, {speed_text(found)}"


def _draw(shown: Table, console: Console, *, marked: object = None) -> None:
    """Place a table; the row that begins with `marked` stands out."""
    drawn = Drawn(
        title=Text(shown.title) if shown.title else None, title_justify="left", pad_edge=False
    )
    texts = shown.texts
    for place, column in enumerate(shown.columns):
        longest = max((len(row[place]) for row in texts), default=0)
        head = fill(column.heading, HEAD_WIDTH, break_long_words=False, break_on_hyphens=False)
        drawn.add_column(
            Text(column.short or head),
            justify="right" if column.letter == "r" else "left",
            overflow="fold",
            no_wrap=column.form == "verdict" or (column.letter == "l" and longest <= WORD_WIDTH),
        )
    for row, values in zip(texts, shown.rows, strict=True):
        cells = zip(row, shown.columns, strict=True)
        styled = [
            Text(text, STYLES.get(text, "") if c.form == "verdict" else "") for text, c in cells
        ]
        is_marked = marked is not None and values[0] == marked
        drawn.add_row(*styled, style="bold red" if is_marked else None)
    console.print(drawn)
    for remark in shown.remarks:
        console.print(Text(remark))


def _print_difference(row: Row, difference: Difference, console: Console) -> None:
    """Who is the same, who parted, and where the throughput went."""
    console.print(Text(difference_text(row, difference)))
    for line in filter(None, (split_text(difference), passes_text(difference.ratio))):
        console.print(Text(f"  {line}", style="dim" if ABOUT in line else ""))
    faults = [p for p in difference.pairs if p.kind in {"draft-state", "target-state"}]
    ties = [p for p in difference.pairs if p.kind == "near-tie"]
    for pair in (faults + ties)[:SHOWN_PAIRS]:
        style = "bold red" if pair in faults else "dim"
        console.print(Text(f"  {parting_text(pair)}", style=style))
    _print_hidden(len(faults) + len(ties) - SHOWN_PAIRS, console, indent="  ")


def _print_hidden(count: int, console: Console, indent: str = "") -> None:
    if count > 0:
        console.print(Text(f"{indent}and {count} more", style="dim"))


def _print_notes(notes: Sequence[str], console: Console) -> None:
    for note in notes:
        console.print(Text(f"note: {note}", style="yellow"))
