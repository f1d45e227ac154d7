"""`eaglebench suites`: what can be run."""

import json

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.plan.suite import load_suite, suite_names


@click.command(cls=StatedCommand, needs=always("output"))
@click.option("--format", "output", type=click.Choice(("table", "json")), default="table")
def suites(output: str) -> None:
    """List what can be run, with the version of each suite."""
    found = [load_suite(name) for name in suite_names()]
    if output == "json":
        click.echo(json.dumps([suite.model_dump() for suite in found], indent=1))
        return
    width = max(len(suite.name) for suite in found)
    for suite in found:
        click.echo(f"{suite.name:<{width}}  v{suite.version}  {suite.description}")
