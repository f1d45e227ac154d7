"""`eaglebench gate`: a stored run against a committed baseline."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglebench.cli.exit_codes import verdict_code

if TYPE_CHECKING:
    from eaglebench.report.document import ReportDocument


@click.command()
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
@click.option("--junit", type=click.Path(path_type=Path), help="Also write JUnit XML here.")
@click.option(
    "--github-summary",
    is_flag=True,
    help="Write the report to GITHUB_STEP_SUMMARY.  [default: where that is set]",
)
@click.option(
    "-o", "--output-dir", default="results", show_default=True, help="Where runs and baselines are."
)
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
    from eaglebench.cli.console import notice, stdout_console
    from eaglebench.cli.judging import judge_folder, parse_renames
    from eaglebench.gate.policy import Policy, parse_rules
    from eaglebench.report.verdicts import render_judgement
    from eaglebench.store.run_folder import find_run

    policy = Policy(
        rules=parse_rules(fail_on),
        across_environments=across_environments,
        fail_on_new=fail_on_new,
    )
    folder = find_run(Path(output_dir), run)
    judged = judge_folder(
        folder, Path(output_dir), baseline, policy, parse_renames(renamed), notice=notice
    )
    render_judgement(judged.judgement, stdout_console())
    _write_files(judged, junit, is_asked=github_summary)
    return verdict_code(judged.judgement.verdict, is_strict=strict)


def _write_files(document: "ReportDocument", junit: Path | None, *, is_asked: bool) -> None:
    from eaglebench.report.formats import FORMATS
    from eaglebench.store.lines import write_text

    if junit is not None:
        write_text(junit, FORMATS["junit"](document))
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(FORMATS["pr"](document) + "\n")
    elif is_asked:
        from eaglebench.errors import UsageError

        raise UsageError("--github-summary: GITHUB_STEP_SUMMARY is not set")
