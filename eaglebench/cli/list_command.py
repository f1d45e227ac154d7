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
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from eaglebench.bench.run_list import summaries
    from eaglebench.cli.console import stdout_console
    from eaglebench.report.terminal import WIDE

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
    console = stdout_console()
    if console.width < WIDE:
        for run in runs:
            console.print(Text(f"{run.run_id}  {run.status}"), soft_wrap=True)
            said = f"accept. length {_length(run)}, {_rate(run)} token/s\n{_what(run)}"
            console.print(Padding(Text(said, overflow="fold"), (0, 0, 0, 2)))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("run", no_wrap=True)
    table.add_column("what", overflow="fold")
    for heading in ("accept. length", "token/s", "status"):
        table.add_column(heading, no_wrap=True)
    for run in runs:
        table.add_row(run.run_id, _what(run), _length(run), _rate(run), run.status)
    console.print(table)


def _length(run: "RunSummary") -> str:
    return _span(run.headline("acceptance_length"), 3)


def _rate(run: "RunSummary") -> str:
    return _span(run.headline("tokens_per_s"), 1)


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
