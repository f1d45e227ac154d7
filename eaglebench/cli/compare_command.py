"""`eaglebench compare`: two stored runs, question by question."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.exit_codes import verdict_code
from eaglebench.cli.output_dir import output_dir_option

if TYPE_CHECKING:
    from eaglebench.bench.api import Comparison


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
@output_dir_option("Where runs are.")
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
    from eaglebench.bench.api import compare as compared
    from eaglebench.cli.console import notice, stdout_console
    from eaglebench.cli.shown_verdict import show_verdict
    from eaglebench.report.terminal import render_run_pair

    found = compared(
        before,
        after,
        renamed=renamed,
        across_environments=across_environments,
        output_dir=output_dir,
        notice=notice,
    )
    if form == "json":
        click.echo(json.dumps(_document(found), indent=1))
        return verdict_code(found.verdict)

    def rows() -> None:
        if found.rows:
            title = f"{found.after} against {found.before}"
            render_run_pair(found.rows, stdout_console(), title=title)

    return show_verdict(found.judgement, above=rows)


def _document(found: "Comparison") -> dict[str, object]:
    return {
        "verdict": found.verdict,
        "findings": [asdict(finding) for finding in found.findings],
        "notes": list(found.judgement.notes),
        "cells": found.cell_values(),
    }
