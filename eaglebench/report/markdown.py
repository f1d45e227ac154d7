"""The whole report in Markdown: what was judged, every count, every turn that parted, the setting."""

from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

from eaglebench.report.answer import answer_lines, headline, headline_words
from eaglebench.report.document import ReportDocument
from eaglebench.report.escaping import markdown_text
from eaglebench.report.judgement_table import findings_table
from eaglebench.report.phrases import (
    AL_SGLANG,
    AL_VLLM,
    LENGTH,
    commit_text,
    split_text,
    workload_text,
)
from eaglebench.report.row_tables import (
    counters_table,
    differences_table,
    facts_table,
    held_rows,
    judged_table,
    partings_table,
    positions_table,
)
from eaglebench.report.rows import Row, by_cell
from eaglebench.report.table import Table
from eaglebench.report.wider_tables import wider_tables

NOTHING = "none"
_ALIGNMENTS = {"l": "left", "r": "right"}


def render_markdown(document: ReportDocument) -> str:
    """Everything the document holds, in GitHub's Markdown."""
    run, rows, judgement = document.run, document.rows, document.judgement
    about = {
        "run": run.run_id,
        "status": run.status,
        "started": run.started,
        "commit": commit_text(run),
        "near-tie thresholds": run.tau,
    }
    splits = [
        f"{row.cell_id} {row.arm} against {difference.against}: {sentence}"
        for row, difference, _ in held_rows(rows)
        if (sentence := split_text(difference))
    ]
    summary = judged_table(
        document,
        rows,
        *("cell", "arm", "verdict", "questions", "acceptance length", "al_sglang", "al_vllm"),
        "token/s",
    )
    parts = [
        f"# {markdown_text(workload_text(document))}",
        f"**{markdown_text(headline(document))}**: {markdown_text(judgement.candidate)} {markdown_text(headline_words(document))}.",
        bullets(answer_lines(document)),
        _facts(about),
        *("## Notes", bullets((*document.notes, *judgement.notes)) or NOTHING),
        *("## Findings", pipe_table(findings_table(judgement, is_whole=True))),
        *("## Cells and arms", pipe_table(summary)),
        f"{LENGTH}; al_sglang = {AL_SGLANG}; al_vllm = {AL_VLLM}.",
        *_cells(rows),
    ]
    for table in wider_tables(document):
        parts += [f"## {markdown_text(table.title)}", pipe_table(table), bullets(table.remarks)]
    parts += [
        "## Against other arms",
        pipe_table(differences_table(rows)),
        bullets(splits) or NOTHING,
    ]
    parts += ["## Turns that part", pipe_table(partings_table(rows)), "## Environment"]
    for name, facts in run.environment.items():
        parts += [f"### {markdown_text(name)}", _facts(facts)]
    for name, facts in (("Suite", run.suite), ("Models", run.models), ("Options", run.config)):
        parts += [f"## {name}", _facts(facts)]
    return "\n\n".join(filter(None, parts)) + "\n"


def pipe_table(table: Table, most: int | None = None) -> str:
    """A table in GitHub's Markdown, of the first rows where that is said."""
    if not table.rows:
        return NOTHING
    return tabulate(
        [[markdown_text(text) for text in row] for row in table.first(most)],
        headers=[markdown_text(column.heading) for column in table.columns],
        tablefmt="pipe",  # tabulate's `github` is the same without the marks that align columns
        disable_numparse=True,  # a question called 007 is no number
        colalign=[_ALIGNMENTS[column.letter] for column in table.columns],
    )


def bullets(lines: Sequence[str]) -> str:
    """A list; empty without a line."""
    return "\n".join(f"- {markdown_text(line)}" for line in lines)


def _cells(rows: Sequence[Row]) -> list[str]:
    """Counters and acceptance by position of each cell, an arm beside the other."""
    parts = []
    for cell_id, of_cell in by_cell(rows).items():
        name = markdown_text(cell_id)
        parts += [f"### Counters of {name}", pipe_table(counters_table(of_cell))]
        parts += [f"### Acceptance by position of {name}", pipe_table(positions_table(of_cell))]
    return parts


def _facts(facts: Mapping[str, Any]) -> str:
    return pipe_table(facts_table("", "", facts))
