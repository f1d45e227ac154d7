"""`eaglebench env`: what a run would record of this machine."""

import json

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.records.words import sized

_SIZE = "_bytes"


@click.command(cls=StatedCommand, needs=always("form"))
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
def env(form: str) -> None:
    """Print what a run would record of this machine."""
    from eaglebench.bench.environment import machine_facts

    facts = machine_facts()
    if form == "json":
        click.echo(json.dumps(facts, indent=1))
        return
    from rich.table import Table

    from eaglebench.cli.console import stdout_console

    table = Table("class", "fact", "value")
    for kind, values in facts.items():
        for name, value in values.items():
            table.add_row(kind, name.removesuffix(_SIZE), _shown(name, value))
    stdout_console().print(table)


def _shown(name: str, value: object) -> str:
    if value is None:
        return "-"
    return sized(value) if name.endswith(_SIZE) and isinstance(value, int) else str(value)
