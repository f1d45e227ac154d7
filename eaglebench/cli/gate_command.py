"""`eaglebench gate`: a stored run against a committed baseline."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.output_dir import output_dir_option
from eaglebench.errors import UsageError

if TYPE_CHECKING:
    from eaglebench.report.document import ReportDocument


@click.command(
    cls=StatedCommand,
    needs=always(
        *("baseline", "fail_on", "renamed", "across_environments", "fail_on_new", "strict"),
        *("junit", "github_summary", "output_dir"),
    ),
)
@click.argument("run", default="latest")
@click.option("--baseline", help="Name or file.  [default: the name of the run's suite]")
@click.option(
    "--fail-on",
    multiple=True,
    metavar="METRIC:LOSS",
    help="al:1%, throughput:2%, verify_steps:0, ...; may be repeated.  [default: every exact "
    "count, no loss]",
)
@click.option(
    "--as",
    "renamed",
    multiple=True,
    metavar="ARM=ARM",
    help="Judge an arm of the run as another arm of the baseline.",
)
@click.option(
    "--across-environments",
    is_flag=True,
    help="Judge acceptance by statistics where machines or libraries differ.",
)
@click.option("--fail-on-new", is_flag=True, help="A cell the baseline lacks is not comparable.")
@click.option("--strict", is_flag=True, help="Exit with 4 where the times are too noisy to tell.")
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write JUnit XML here; missing folders are made.",
)
@click.option(
    "--github-summary",
    is_flag=True,
    help="Write the report to GITHUB_STEP_SUMMARY.  [default: where that is set]",
)
@output_dir_option("Where runs and baselines are.")
def gate(
    run: str,
    *,
    baseline: str | None,
    fail_on: tuple[str, ...],
    renamed: tuple[str, ...],
    across_environments: bool,
    fail_on_new: bool,
    strict: bool,
    junit: Path | None,
    github_summary: bool,
    output_dir: str,
) -> int:
    """Judge RUN (an id, a path, `latest`) against a baseline and exit with the verdict.

    0 pass, 3 regression, 4 inconclusive with --strict, 5 not comparable or nothing measured.
    """
    from eaglebench.bench.api import judged_document
    from eaglebench.cli.console import notice
    from eaglebench.cli.shown_verdict import show_verdict

    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if github_summary and not summary:
        raise UsageError("--github-summary: GITHUB_STEP_SUMMARY is not set")
    judged = judged_document(
        run,
        baseline=baseline,
        fail_on=fail_on,
        renamed=renamed,
        across_environments=across_environments,
        fail_on_new=fail_on_new,
        output_dir=output_dir,
        notice=notice,
    )
    status = show_verdict(judged.judgement, is_strict=strict)
    _write_files(judged, junit, summary)
    return status


def _write_files(document: "ReportDocument", junit: Path | None, summary: str | None) -> None:
    from eaglebench.cli.shown_verdict import append_beside, write_beside
    from eaglebench.report.formats import render

    if junit is not None:
        write_beside(junit, partial(render, "junit", document), "--junit")
    if summary:
        block = partial(render, "pr", document)
        append_beside(Path(summary), lambda: block() + "\n", "GITHUB_STEP_SUMMARY")
