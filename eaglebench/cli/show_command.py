"""`eaglebench show`: the tables of a stored run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from eaglebench.store.run_folder import RunFolder

DEFAULT_OUTPUT = "results"


@click.command()
@click.argument("run", default="latest")
@click.option(
    "-o", "--output-dir", default=DEFAULT_OUTPUT, show_default=True, help="Where runs are."
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
def show(run: str, output_dir: str, form: str) -> None:
    """Print the tables of RUN: an id, a path, `latest` or `latest~1`."""
    from eaglebench.store.run_folder import find_run

    print_run(find_run(Path(output_dir), run), is_json=form == "json")


def print_run(folder: "RunFolder", *, is_json: bool) -> None:
    """Print a run as tables or as one JSON document."""
    from eaglebench.cli.console import stdout_console
    from eaglebench.cli.results import load_rows
    from eaglebench.report.notes import run_notes
    from eaglebench.report.terminal import render_run

    rows = load_rows(folder)
    manifest = folder.manifest()
    if is_json:
        document = {"run": manifest, "cells": [row.as_dict() for row in rows]}
        click.echo(json.dumps(document, indent=1))
        return
    page_sizes = sorted({record.page_size for record in folder.turns()})
    notes = run_notes(rows, page_sizes, manifest["models"]["warnings"])
    notes += folder.notices()
    if manifest["status"] != "done":
        notes.append(f"this run is {manifest['status']}: not every question has been run")
    title = f"{manifest['suite']['name']}, {manifest['models']['target_id']}"
    title += f", {manifest['models']['dtype']}"
    render_run(rows, stdout_console(), title=title, notes=notes)
