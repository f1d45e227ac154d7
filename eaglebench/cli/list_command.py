"""`eaglebench list`: the stored runs."""

from pathlib import Path

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.errors import EaglebenchError


@click.command("list", cls=StatedCommand, needs=always("output_dir"))
@click.option("-o", "--output-dir", default="results", show_default=True, help="Where runs are.")
def list_runs(output_dir: str) -> None:
    """List stored runs, the oldest first."""
    from rich.table import Table

    from eaglebench.cli.console import stdout_console
    from eaglebench.store.run_folder import list_runs as stored_runs

    runs = stored_runs(Path(output_dir))
    if not runs:
        click.echo(f"no runs in {Path(output_dir) / 'runs'}; try: eaglebench run tiny")
        return
    table = Table("run", "suite", "model", "arms", "status")
    for run in runs:
        try:
            manifest = run.manifest()
            config = manifest["config"]
            facts = [config["suite"], config["model"], ",".join(config["arms"]), manifest["status"]]
        except (EaglebenchError, KeyError, TypeError):
            facts = ["?", "?", "?", "unreadable"]
        table.add_row(run.run_id, *facts)
    stdout_console().print(table)
