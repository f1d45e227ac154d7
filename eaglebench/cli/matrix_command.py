"""`eaglebench matrix`: look at a matrix file before it runs."""

from pathlib import Path

import click

from eaglebench.cli.dry_run import cell_lines
from eaglebench.plan.matrix import Expansion, expand
from eaglebench.plan.matrix_file import read_matrix_file
from eaglebench.plan.run_config import RunConfig


@click.group()
def matrix() -> None:
    """Look at a matrix file."""


@matrix.command()
@click.argument("file", type=click.Path(path_type=Path))
def show(file: Path) -> None:
    """Print the cells of FILE, and those that are skipped with the reason."""
    for line in cell_lines(_expand(file)):
        click.echo(line)


@matrix.command()
@click.argument("file", type=click.Path(path_type=Path))
def validate(file: Path) -> None:
    """Say whether FILE can be run."""
    expansion = _expand(file)
    click.echo(f"ok: {len(expansion.cells)} cells, {len(expansion.skipped)} skipped")


def _expand(file: Path) -> Expansion:
    return expand(read_matrix_file(file), RunConfig(suite="none").limits)
