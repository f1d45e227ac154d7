"""`eaglebench history`: a metric over the stored runs."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.output_dir import output_dir_option


@click.command(
    cls=StatedCommand,
    needs=always("metric", "suite", "cell", "arms", "last", "form", "output_dir"),
)
@click.argument("metric", default="al")
@click.option("--suite", help="Runs of this suite alone.")
@click.option("--cell", help="Cells in whose name this stands.")
@click.option("--arm", "arms", multiple=True, help="This arm alone; may be repeated.")
@click.option("--last", type=click.IntRange(min=1), help="So many of the newest runs.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table")
@output_dir_option("Where runs are.")
def history(
    metric: str,
    *,
    suite: str | None,
    cell: str | None,
    arms: tuple[str, ...],
    last: int | None,
    form: str,
    output_dir: str,
) -> None:
    """Show METRIC (al, verify_steps, cached_tokens, throughput, ...) over the stored runs.

    Each line names the commit, and how it differs from the run of the same work before it.
    """
    from eaglebench.bench import history as use_case
    from eaglebench.cli.console import stdout_console
    from eaglebench.report.history_table import history_csv, history_table
    from eaglebench.report.terminal import render_table

    rows = use_case.history(Path(output_dir), metric, suite=suite, cell=cell, arms=arms, last=last)
    if form == "json":
        click.echo(json.dumps([asdict(row) for row in rows], indent=1))
    elif form == "csv":
        click.echo(history_csv(rows), nl=False)
    else:
        render_table(history_table(rows, metric), stdout_console())
