"""`eaglebench list`: the stored runs."""

from pathlib import Path

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.output_dir import output_dir_option
from eaglebench.records.flags import in_folder


@click.command("list", cls=StatedCommand, needs=always("output_dir"))
@output_dir_option("Where runs are.")
def list_runs(output_dir: str) -> None:
    """List stored runs, the oldest first."""
    from rich.table import Table

    from eaglebench.bench.stored_run import list_runs as stored_runs
    from eaglebench.cli.console import stdout_console

    runs = stored_runs(Path(output_dir))
    if not runs:
        click.echo(
            f"no runs in {Path(output_dir) / 'runs'}; try: eaglebench run tiny{in_folder(output_dir)}"
        )
        return
    table = Table("run", "suite", "model", "arms", "status")
    for run in runs:
        table.add_row(run.run_id, *run.facts)
    stdout_console().print(table)
