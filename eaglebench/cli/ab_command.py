"""`eaglebench ab`: two versions of the code, timed in processes that take turns."""

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from eaglebench.cli.effects import HAS_RANGE, StatedCommand, always
from eaglebench.cli.output_dir import output_dir_option
from eaglebench.errors import UsageError

_SETTLED = (
    "-o",
    "--output-dir",
    "--passes",
    "--pairs",
    "--resume",
    "--progress",
    "--format",
    "--dry-run",
)


@click.command(
    cls=StatedCommand,
    needs=always("ref_a", "ref_b", "passes", "allowed", "strict", "output_dir")
    | {"precision": HAS_RANGE},
    context_settings={"ignore_unknown_options": True},
)
@click.option("--a", "ref_a", required=True, metavar="REF", help="The version to be held against.")
@click.option("--b", "ref_b", required=True, metavar="REF", help="The version in question.")
@click.argument("suite")
@click.argument("run_options", nargs=-1, type=click.UNPROCESSED)
@click.option(
    *("--passes", "--pairs", "passes"),
    default="8:40",
    show_default=True,
    help="Pairs of processes, LEAST:MOST.",
)
@click.option("--precision", default="1%", show_default=True, help="Half-width to stop at.")
@click.option("--allowed", default="2%", show_default=True, help="Throughput that may be lost.")
@click.option("--strict", is_flag=True, help="Exit with 4 where the times are too noisy to tell.")
@output_dir_option("Where runs go.")
def ab(
    ref_a: str,
    ref_b: str,
    suite: str,
    run_options: tuple[str, ...],
    *,
    passes: str,
    precision: str,
    allowed: str,
    strict: bool,
    output_dir: str,
) -> int:
    """Run SUITE with version A and version B in turns (A B, B A, ...) and compare them.

    A REF is a git commit of the current repository, a folder with a checkout, or the path of a
    python in another environment. Further options are those of `eaglebench run`. Counts are
    compared question by question, tokens a second over pairs of processes.
    """
    from eaglebench.bench.ab import ProcessPairs, compare_versions
    from eaglebench.bench.versions import open_version
    from eaglebench.cli.console import notice, stdout_console
    from eaglebench.cli.shown_verdict import show_verdict
    from eaglebench.plan.passes import PassRange, parse_share
    from eaglebench.report.terminal import render_run_pair

    for option in _SETTLED:
        if any(given.split("=")[0] == option for given in run_options):
            raise UsageError(f"{option} of `run` is settled by `ab` itself")
    try:
        pairs = ProcessPairs(
            number=PassRange.parse(passes),
            precision=parse_share(precision),
            allowed=parse_share(allowed),
        )
    except ValueError as error:
        raise UsageError(f"--passes, --precision or --allowed: {error}") from error
    folder = Path(output_dir) / "ab" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{suite}"
    with open_version(ref_a, Path.cwd()) as a, open_version(ref_b, Path.cwd()) as b:
        arguments = (suite, *run_options)
        rows, judgement = compare_versions(
            a, b, arguments, folder, pairs, environment=os.environ, notice=notice
        )

    def lengths() -> None:
        if rows:
            render_run_pair(rows, stdout_console(), title=f"B ({b.name}) against A ({a.name})")

    return show_verdict(judgement, is_strict=strict, above=lengths)
