"""`eaglebench compare`: two stored runs, question by question."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.exit_codes import verdict_code

if TYPE_CHECKING:
    from eaglebench.records.verdict import Judgement
    from eaglebench.report.run_pair import PairedRow


@click.command(
    cls=StatedCommand, needs=always("renamed", "across_environments", "form", "output_dir")
)
@click.argument("before", default="latest~1")
@click.argument("after", default="latest")
@click.option(
    "--as",
    "renamed",
    multiple=True,
    metavar="ARM=ARM",
    help="Compare an arm of AFTER with another arm of BEFORE.",
)
@click.option("--across-environments", is_flag=True, help="Also where libraries or devices differ.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@click.option("-o", "--output-dir", default="results", show_default=True, help="Where runs are.")
def compare(
    before: str,
    after: str,
    *,
    renamed: tuple[str, ...],
    across_environments: bool,
    form: str,
    output_dir: str,
) -> int:
    """Compare run AFTER with run BEFORE (ids, paths, `latest`, `latest~1`).

    0 no worse, 3 regression, 5 not comparable.
    """
    from eaglebench.bench.compare import pair_runs
    from eaglebench.bench.judge import parse_renames
    from eaglebench.cli.console import stdout_console
    from eaglebench.report.run_pair import render_run_pair
    from eaglebench.report.verdicts import render_judgement
    from eaglebench.store.run_folder import find_run

    earlier, later = (find_run(Path(output_dir), name) for name in (before, after))
    rows, judgement = pair_runs(
        earlier, later, parse_renames(renamed), across_environments=across_environments
    )
    if form == "json":
        click.echo(json.dumps(_document(rows, judgement), indent=1))
    else:
        console = stdout_console()
        title = f"{later.run_id} against {earlier.run_id}"
        if rows:
            render_run_pair(rows, console, title=title)
        render_judgement(judgement, console)
    return verdict_code(judgement.verdict)


def _document(rows: "list[PairedRow]", judgement: "Judgement") -> dict[str, object]:
    from eaglebench.report.comparison import difference_document

    return {
        "verdict": judgement.verdict,
        "findings": [asdict(finding) for finding in judgement.findings],
        "notes": list(judgement.notes),
        "cells": [
            {"cell_id": row.cell_id, "arm": row.arm, **difference_document(row.difference)}
            for row in rows
        ],
    }
