"""`eaglebench bisect`: the commit that made counts worse."""

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.output_dir import output_dir_option


@click.command(
    cls=StatedCommand,
    needs=always("good", "bad", "output_dir"),
    context_settings={"ignore_unknown_options": True},
)
@click.option("--good", required=True, metavar="REF", help="A commit whose counts are good.")
@click.option("--bad", required=True, metavar="REF", help="A later commit that is worse.")
@click.argument("suite")
@click.argument("run_options", nargs=-1, type=click.UNPROCESSED)
@output_dir_option("Where runs go.")
def bisect(
    good: str, bad: str, suite: str, run_options: tuple[str, ...], *, output_dir: str
) -> int:
    """Find the first commit between --good and --bad whose counts on SUITE are worse.

    Each commit is checked out, run once and compared with the good one question by question; so many
    runs as the number of commits can be halved, and two. Further options are those of `eaglebench run`.
    """
    from eaglebench.bench.bisect import first_bad
    from eaglebench.cli.console import notice, stdout_console
    from eaglebench.cli.exit_codes import PASS
    from eaglebench.report.terminal import render_judgement

    folder = Path(output_dir) / "bisect" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{suite}"
    found = first_bad(
        good,
        bad,
        (suite, *run_options),
        folder,
        Path.cwd(),
        environment=os.environ,
        notice=notice,
    )
    render_judgement(found.judgement, stdout_console())
    click.echo(f"first worse: {found.commit[:12]} {found.subject}")
    click.echo(f"runs are in {folder}")
    return PASS
