"""`eaglebench list`: the stored runs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.output_dir import output_dir_option
from eaglebench.records.flags import in_folder
from eaglebench.records.words import counted

if TYPE_CHECKING:
    from eaglebench.bench.run_list import RunSummary


@click.command("list", cls=StatedCommand, needs=always("output_dir", "form"))
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@output_dir_option("Where runs are.")
def list_runs(output_dir: str, form: str) -> None:
    """List stored runs, the oldest first.

    Acceptance length and token/s are those of the first arm with a cache; of several cells, from
    the least to the most.
    """
    from rich.table import Table

    from eaglebench.bench.run_list import summaries
    from eaglebench.cli.console import stdout_console

    runs = summaries(Path(output_dir))
    if form == "json":
        click.echo(json.dumps([asdict(run) for run in runs], indent=1))
        return
    if not runs:
        click.echo(
            f"no runs in {Path(output_dir) / 'runs'}; "
            f"try: eaglebench run tiny{in_folder(output_dir)}"
        )
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("run", no_wrap=True)
    table.add_column("what", overflow="fold")
    table.add_column("accept. length")
    table.add_column("token/s")
    table.add_column("status")
    for run in runs:
        table.add_row(
            run.run_id,
            _what(run),
            _span(run.headline("acceptance_length"), 3),
            _span(run.headline("tokens_per_s"), 1),
            run.status,
        )
    stdout_console().print(table)


def _what(run: "RunSummary") -> str:
    """Suite, models, cells and arms, and what the user calls it."""
    if run.suite is None:
        return "?"
    models = " + ".join(each for each in (run.model, run.draft_model) if each)
    parts = [run.suite, f"{models} {run.dtype}", counted(len(run.cells), "cell")]
    parts += [",".join(run.arms), *(f"{key}={value}" for key, value in run.labels.items())]
    return "; ".join(parts)


def _span(found: tuple[float, float] | None, digits: int) -> str:
    if found is None:
        return "-"
    least, most = (f"{each:.{digits}f}" for each in found)
    return least if least == most else f"{least} to {most}"
