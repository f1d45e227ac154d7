"""`eaglebench matrix`: look at a matrix file before it runs."""

import click

from eaglebench.bench.estimate import cell_lines
from eaglebench.cli.effects import StatedCommand
from eaglebench.plan.matrix import Expansion, expand
from eaglebench.plan.matrix_file import matrix_path, read_matrix_file
from eaglebench.plan.run_config import RunConfig
from eaglebench.records.words import counted


@click.group()
def matrix() -> None:
    """Look at a matrix: a file, or one that ships with eaglebench (compatibility)."""


@matrix.command(cls=StatedCommand, needs={})
@click.argument("file")
def show(file: str) -> None:
    """Print the cells of FILE, and those that are skipped with the reason."""
    for line in cell_lines(_expand(file)):
        click.echo(line)


@matrix.command(cls=StatedCommand, needs={})
@click.argument("file")
def validate(file: str) -> None:
    """Say whether FILE can be run."""
    expansion = _expand(file)
    click.echo(f"ok: {counted(len(expansion.cells), 'cell')}, {len(expansion.skipped)} skipped")


def _expand(file: str) -> Expansion:
    return expand(read_matrix_file(matrix_path(file)), RunConfig(suite="none").limits)
