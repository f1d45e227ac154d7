"""`eaglebench show`: the tables of a stored run."""

import json
from typing import TYPE_CHECKING

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.exit_codes import shown_code
from eaglebench.cli.output_dir import output_dir_option

if TYPE_CHECKING:
    from eaglebench.bench.stored_run import Run
    from eaglebench.report.document import ReportDocument


@click.command(cls=StatedCommand, needs=always("output_dir", "form", "is_paste"))
@click.argument("run", default="latest")
@output_dir_option("Where runs are.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@click.option(
    "--paste", "is_paste", is_flag=True, help="Only the lines to paste, of every cell and arm."
)
def show(run: str, output_dir: str, form: str, *, is_paste: bool) -> int:
    """Print the tables of RUN: an id, a path, `latest` or `latest~1`."""
    from eaglebench.bench.api import load
    from eaglebench.cli.console import notice

    loaded = load(run, output_dir=output_dir, notice=notice)
    document = print_paste(loaded) if is_paste else print_run(loaded, is_json=form == "json")
    return shown_code(document.doubts, document.places)


def print_paste(run: "Run") -> "ReportDocument":
    """Print the lines that can be pasted; returns what was shown."""
    from eaglebench.cli.console import stdout_console
    from eaglebench.report.terminal import render_paste_lines

    render_paste_lines(run.document, stdout_console())
    return run.document


def print_run(run: "Run", *, is_json: bool) -> "ReportDocument":
    """Print a run as tables or as one JSON document; returns what was shown."""
    from eaglebench.cli.console import stdout_console
    from eaglebench.report.terminal import render_run

    document, manifest = run.document, run.manifest
    if is_json:
        cells = [row.as_dict() for row in document.rows]
        click.echo(json.dumps({"run": manifest, "cells": cells}, indent=1))
        return document
    title = f"{manifest['suite']['name']}, {manifest['models']['target_id']}"
    title += f", {manifest['models']['dtype']}"
    render_run(document, stdout_console(), title=title)
    return document
