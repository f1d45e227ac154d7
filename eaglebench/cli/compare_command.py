"""`eaglebench compare`: two stored runs, question by question."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.exit_codes import verdict_code
from eaglebench.cli.output_dir import output_dir_option
from eaglebench.errors import UsageError

if TYPE_CHECKING:
    from eaglebench.bench.api import Comparison
    from eaglebench.bench.side_by_side import SideBySide

TWO = 2
"""More runs than these stand in one table."""


@click.command(
    cls=StatedCommand, needs=always("renamed", "across_environments", "form", "output_dir")
)
@click.argument("runs", nargs=-1)
@click.option(
    "--as",
    "renamed",
    multiple=True,
    metavar="ARM=ARM",
    help="Compare an arm of the later run with another arm of the earlier one.",
)
@click.option("--across-environments", is_flag=True, help="Also where libraries or devices differ.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@output_dir_option("Where runs are.")
def compare(
    runs: tuple[str, ...],
    *,
    renamed: tuple[str, ...],
    across_environments: bool,
    form: str,
    output_dir: str,
) -> int:
    """Compare the later of two RUNS with the earlier one (ids, paths, `latest`, `latest~1`).

    Without a name these are the last two; a single one is held against the last one. Three and
    more stand in one table, each against the first. 0 no worse, 3 regression, 5 not comparable.
    """
    if len(runs) > TWO:
        return _side_by_side(runs, renamed, across_environments, form, output_dir)
    before, after = (*runs, *("latest~1", "latest")[len(runs) :])
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


def _side_by_side(
    names: Sequence[str],
    renamed: Sequence[str],
    across_environments: bool,
    form: str,
    output_dir: str,
) -> int:
    """Three and more runs, each against the first one."""
    from eaglebench.bench.api import load
    from eaglebench.bench.side_by_side import hold_side_by_side
    from eaglebench.cli.console import notice, stdout_console
    from eaglebench.cli.shown_verdict import show_verdict
    from eaglebench.report.setups_table import setups_table
    from eaglebench.report.terminal import render_table

    if renamed:
        raise UsageError("--as needs two runs", hint="compare them one by one")
    runs = [load(name, output_dir=output_dir, notice=notice) for name in names]
    found = hold_side_by_side(runs, across_environments=across_environments)
    if form == "json":
        click.echo(json.dumps(setups_document(found), indent=1))
        return verdict_code(found.judgement.verdict)
    return show_verdict(
        found.judgement,
        above=lambda: render_table(setups_table(found.rows, is_judged=True), stdout_console()),
    )


def setups_document(found: "SideBySide") -> dict[str, object]:
    """Several runs for other programs."""
    return {
        "verdict": found.judgement.verdict,
        "findings": [asdict(finding) for finding in found.judgement.findings],
        "notes": list(found.judgement.notes),
        "rows": [asdict(row) for row in found.rows],
    }


def _document(found: "Comparison") -> dict[str, object]:
    return {
        "verdict": found.verdict,
        "findings": [asdict(finding) for finding in found.findings],
        "notes": list(found.judgement.notes),
        "commands": list(found.judgement.commands),
        "cells": found.cell_values(),
    }
