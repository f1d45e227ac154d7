"""The run as a table in a terminal, and what has to be said under it."""

from collections.abc import Sequence
from math import expm1
from textwrap import fill

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.report.leads import LEADS, leads_text
from eaglebench.report.paste import paste_lines
from eaglebench.report.phrases import SHARE, SHORT_SHARE, number
from eaglebench.report.rows import Row
from eaglebench.report.text_table import TextTable
from eaglebench.stats.difference import Difference
from eaglebench.stats.pairing import NOT_PAIRED

WIDE = 120
SHOWN_PAIRS = 8
HEAD_WIDTH = 10
WORD_WIDTH = 12
"""Words up to this long stay on one line; numbers next to them give way."""


def render_run(
    rows: Sequence[Row],
    console: Console,
    *,
    title: str,
    notes: Sequence[str] = (),
    tables: Sequence[TextTable] = (),
) -> None:
    """Print a table a cell, the differences, tables over the cells, notes, the lines to paste."""
    is_wide = console.width >= WIDE
    for cell_id in dict.fromkeys(row.cell_id for row in rows):
        of_cell = [row for row in rows if row.cell_id == cell_id]
        console.print(_table(of_cell, f"{title} - {cell_id}", is_wide=is_wide))
    console.print(
        "accept. length = tokens delivered by verify steps / verify steps (prefill's token not "
        "counted); by position = share of verify steps that accepted draft 1, 2, ...",
        style="dim",
    )
    for row in rows:
        for difference in row.differences:
            _print_difference(row, difference, console)
    for table in tables:
        _print_table(table, console)
    for note in notes:
        console.print(Text(f"note: {note}", style="yellow"))
    console.print()
    for line in paste_lines(rows):
        console.print(line, soft_wrap=True, highlight=False)


def _table(rows: Sequence[Row], title: str, *, is_wide: bool) -> Table:
    table = Table(title=title, title_justify="left", pad_edge=False)
    table.add_column("arm", no_wrap=True)
    table.add_column("accept.\nlength", justify="right")
    table.add_column("by position", justify="right")
    table.add_column("token/s", justify="right")
    if is_wide:
        table.add_column("verify\nsteps", justify="right")
        table.add_column("cached\ntokens", justify="right")
        table.add_column("prefilled\ntokens", justify="right")
        table.add_column("pages\ntaken", justify="right")
    else:
        table.add_column("steps /\ncached", justify="right")
    table.add_column(f"against {BASELINE_ARM}\nlength, token/s", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row, is_wide=is_wide))
    return table


def _cells(row: Row, *, is_wide: bool) -> list[str]:
    counts = row.counts
    positions = " ".join(f"{share:.2f}" for share in row.by_position) or "-"
    cells = [
        row.arm,
        number(counts.acceptance_length, ".3f"),
        positions,
        number(row.speed.tokens_per_s if row.speed else None, ".2f"),
    ]
    if is_wide:
        cells += [
            number(counts.verify_steps, "d"),
            number(counts.cached_tokens, "d"),
            number(counts.prefill_tokens_computed, "d"),
            number(counts.pages_allocated, "d"),
        ]
    else:
        cells.append(f"{number(counts.verify_steps, 'd')}\n{number(counts.cached_tokens, 'd')}")
    return [*cells, _against(row.difference)]


def _against(difference: Difference | None) -> str:
    if difference is None:
        return "-"
    length = number(difference.acceptance, SHARE)
    throughput = number(difference.throughput, SHORT_SHARE)
    return f"{length}, {throughput}"


def _print_difference(row: Row, difference: Difference, console: Console) -> None:
    """Who is the same, who parted, and where the throughput went."""
    total = len(difference.pairs)
    parts = [
        f"{difference.count('identical')} of {total} turns identical",
        f"{difference.count('near-tie')} near-ties",
        f"{difference.num_same_output} same output",
    ]
    parts += [f"{difference.count(kind)} {kind}" for kind in NOT_PAIRED if difference.count(kind)]
    if difference.p_value is not None and difference.p_value < 1:
        parts.append(f"p(shorter) = {difference.p_value:.4f}")
    name = f"{row.cell_id} {row.arm}"
    console.print(f"{name} against {difference.against}: {', '.join(parts)}", highlight=False)
    if difference.log_ratio is not None:
        acceptance, rate, share = (f"{expm1(part):{SHORT_SHARE}}" for part in difference.log_ratio)
        console.print(
            f"  throughput = acceptance {acceptance} x step rate {rate} x decode share {share}",
            highlight=False,
        )
    ratio = difference.ratio
    if ratio is not None and ratio.half_width is not None and ratio.mde is not None:
        console.print(
            f"  over {ratio.passes} passes {ratio.change:{SHARE}} +- {ratio.half_width:.2%}, smallest "
            f"detectable {ratio.mde:.2%}",
            highlight=False,
        )
    _print_partings(difference, console)


def _print_partings(difference: Difference, console: Console) -> None:
    faults = [p for p in difference.pairs if p.kind in {"draft-state", "target-state"}]
    ties = [p for p in difference.pairs if p.kind == "near-tie"]
    for pair in (faults + ties)[:SHOWN_PAIRS]:
        where = ""
        if pair.parting is not None:
            parting = pair.parting
            where = f": {parting.side} at step {parting.step}, position {parting.position}, "
            where += f"{LEADS} {leads_text(parting)}"
        style = "bold red" if pair in faults else "dim"
        line = f"  {pair.kind}: question {pair.question_id} turn {pair.turn + 1}{where}"
        console.print(Text(line, style=style))
    hidden = len(faults) + len(ties) - SHOWN_PAIRS
    if hidden > 0:
        console.print(f"  and {hidden} more", style="dim")


def _print_table(shown: TextTable, console: Console) -> None:
    table = Table(title=shown.caption, title_justify="left", pad_edge=False)
    texts = zip(*shown.rows, strict=True)
    for name, letter, column in zip(shown.columns, shown.alignment, texts, strict=True):
        table.add_column(
            fill(name, HEAD_WIDTH, break_long_words=False),
            justify="right" if letter == "r" else "left",
            overflow="fold",
            no_wrap=letter == "l" and max(map(len, column)) <= WORD_WIDTH,
        )
    for row in shown.rows:
        table.add_row(*map(Text, row))
    console.print(table)
    for remark in shown.remarks:
        console.print(Text(remark))
