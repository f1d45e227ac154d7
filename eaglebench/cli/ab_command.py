"""`eaglebench ab`: two versions of the code, timed in processes that take turns."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglebench.cli.effects import HAS_RANGE, StatedCommand, always
from eaglebench.cli.exit_codes import verdict_code
from eaglebench.errors import UsageError

if TYPE_CHECKING:
    from eaglebench.bench.versions import Version
    from eaglebench.records.verdict import Judgement

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
@click.option("-o", "--output-dir", default="results", show_default=True, help="Where runs go.")
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
    from eaglebench.bench.versions import open_version
    from eaglebench.cli.console import stdout_console
    from eaglebench.plan.passes import PassRange, parse_share
    from eaglebench.report.verdicts import render_judgement

    for option in _SETTLED:
        if any(given.split("=")[0] == option for given in run_options):
            raise UsageError(f"{option} of `run` is settled by `ab` itself")
    try:
        pass_range = PassRange.parse(passes)
        width, loss = parse_share(precision), parse_share(allowed)
    except ValueError as error:
        raise UsageError(f"--passes, --precision or --allowed: {error}") from error
    folder = Path(output_dir) / "ab" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{suite}"
    with open_version(ref_a, Path.cwd()) as a, open_version(ref_b, Path.cwd()) as b:
        arguments = (suite, *run_options)
        ratios = _boots((a, b), arguments, folder, pass_range.least, pass_range.most, width)
    judgement = _judge(folder, (ref_a, ref_b), ratios, loss)
    render_judgement(judgement, stdout_console())
    return verdict_code(judgement.verdict, is_strict=strict)


def _boots(
    versions: "tuple[Version, Version]",
    arguments: Sequence[str],
    folder: Path,
    least: int,
    most: int,
    width: float,
) -> dict[tuple[str, str], list[float]]:
    """Start both versions in turns until the ratios are known to the width asked for."""
    from math import log

    from eaglebench.cli.console import notice
    from eaglebench.stats.throughput import estimate_ratio

    ratios: dict[tuple[str, str], list[float]] = {}
    for number in range(most):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        for which in order:
            where = folder / "ab"[which]
            versions[which].run(
                ["run", *arguments, "--progress", "none", "--output-dir", str(where)], os.environ
            )
        rates = [_rates(folder / side) for side in "ab"]
        for key, rate in rates[1].items():
            if key in rates[0]:
                ratios.setdefault(key, []).append(log(rate) - log(rates[0][key]))
        estimates = [estimate_ratio(values) for values in ratios.values()]
        widths = [e.half_width for e in estimates if e and e.half_width is not None]
        widest = max(widths, default=None)
        shown = "" if widest is None else f", half-width {widest:.2%}"
        notice(f"pair {number + 1} of {least} to {most}{shown}")
        if number + 1 >= least and widest is not None and widest <= width:
            break
    return ratios


def _rates(root: Path) -> dict[tuple[str, str], float]:
    """Tokens a second of the newest run, by cell and arm."""
    from eaglebench.stats.acceptance import speed
    from eaglebench.store.decode import measured_blocks
    from eaglebench.store.run_folder import find_run

    blocks = measured_blocks(find_run(root, "latest"))
    keys = dict.fromkeys((block.cell_id, block.arm) for block in blocks)
    rates = {key: speed([b for b in blocks if (b.cell_id, b.arm) == key]) for key in keys}
    return {key: rate.tokens_per_s for key, rate in rates.items() if rate and rate.tokens_per_s}


def _judge(
    folder: Path,
    names: tuple[str, str],
    ratios: dict[tuple[str, str], list[float]],
    allowed: float,
) -> "Judgement":
    """Counts of the newest runs of both, question by question, then times over all pairs."""
    from eaglebench.bench.compare import pair_runs
    from eaglebench.gate.policy import ALPHA
    from eaglebench.gate.times import judge_processes
    from eaglebench.records.verdict import Judgement
    from eaglebench.store.run_folder import find_run

    runs = [find_run(folder / side, "latest") for side in "ab"]
    _, counted = pair_runs(runs[0], runs[1], {}, across_environments=False)
    return Judgement(
        candidate=f"B ({names[1]})",
        baseline=f"A ({names[0]})",
        findings=(*counted.findings, *judge_processes(ratios, allowed, ALPHA)),
        notes=(*counted.notes, f"runs are in {folder}"),
    )
