"""`eaglebench env`: what a run would record of this machine."""

import json

import click

from eaglebench.cli.effects import StatedCommand, always


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
            table.add_row(kind, name, str(value))
    stdout_console().print(table)
