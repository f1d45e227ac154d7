"""`eaglebench baseline`: snapshots of good runs, committed beside the code."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglebench.cli.effects import StatedCommand, always, without
from eaglebench.cli.output_dir import output_dir_option
from eaglebench.records.flags import in_folder
from eaglebench.records.words import counted, sized

if TYPE_CHECKING:
    from eaglebench.bench.baseline import Allowed

_OUTPUT = output_dir_option("Where runs and baselines are.")
_REASON = click.option("--reason", help="Why this run is the new normal; kept in the file.")
_UNTRUSTED = click.option(
    "--allow-untrusted", is_flag=True, help="Also of a run with failed or cut answers."
)
_RUNS = click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="So many runs of the same work, RUN the newest: how far whole runs differ.",
)
_DIRTY = click.option("--allow-dirty", is_flag=True, help="Also of code with uncommitted changes.")


@click.group()
def baseline() -> None:
    """Snapshots of good runs that later runs are judged against."""


@baseline.command(
    cls=StatedCommand,
    needs=always("runs", "reason", "allow_dirty", "allow_untrusted", "output_dir"),
)
@click.argument("name")
@click.argument("run", default="latest")
@_RUNS
@_REASON
@_DIRTY
@_UNTRUSTED
@_OUTPUT
def save(
    name: str,
    run: str,
    reason: str | None,
    output_dir: str,
    *,
    runs: int,
    allow_dirty: bool,
    allow_untrusted: bool,
) -> None:
    """Make a baseline NAME of RUN; one that exists is changed by `accept`, not by `save`."""
    from eaglebench.bench.baseline import Allowed, refuse_known

    refuse_known(Path(output_dir), name)
    allowed = Allowed(dirty=allow_dirty, untrusted=allow_untrusted)
    _write(name, run, reason, output_dir, allowed, runs)


@baseline.command(
    cls=StatedCommand,
    needs=always("runs", "from_ci", "reason", "allow_dirty", "allow_untrusted", "output_dir")
    | {"run": without("from_ci")},
)
@click.argument("name")
@click.argument("run", default="latest")
@click.option(
    "--from-ci",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the run out of a CI artifact (a run folder, or a folder that holds one).",
)
@_RUNS
@_REASON
@_DIRTY
@_UNTRUSTED
@_OUTPUT
def accept(
    name: str,
    run: str,
    from_ci: Path | None,
    reason: str | None,
    output_dir: str,
    *,
    runs: int,
    allow_dirty: bool,
    allow_untrusted: bool,
) -> None:
    """Let RUN take the place of the baseline NAME, after showing what changes."""
    from eaglebench.bench.baseline import Allowed, open_baseline, run_of_artifact

    open_baseline(Path(output_dir), name)
    chosen = run if from_ci is None else str(run_of_artifact(from_ci))
    _print_diff(name, chosen, output_dir)
    allowed = Allowed(dirty=allow_dirty, untrusted=allow_untrusted)
    _write(name, chosen, reason, output_dir, allowed, runs)


@baseline.command("list", cls=StatedCommand, needs=always("output_dir"))
@_OUTPUT
def list_all(output_dir: str) -> None:
    """List baselines."""
    from rich.table import Table

    from eaglebench.bench.baseline import known_baselines
    from eaglebench.cli.console import stdout_console
    from eaglebench.errors import InputFileError

    root = Path(output_dir)
    known = known_baselines(root)
    if not known:
        click.echo(
            f"no baselines in {root / 'baselines'}; "
            f"try: eaglebench baseline save NAME{in_folder(root)}"
        )
        return
    table = Table("baseline", "suite", "cells and arms", "dtype", "made of", "reason")
    for name, found in known.items():
        if isinstance(found, InputFileError):
            table.add_row(name, "unreadable", "", "", "", found.message)
            continue
        dtype, arms = str(found.workload.get("dtype")), str(len(found.arms))
        table.add_row(name, found.suite, arms, dtype, found.created_from, found.reason)
    stdout_console().print(table)


@baseline.command(cls=StatedCommand, needs=always("output_dir"))
@click.argument("name")
@_OUTPUT
def show(name: str, output_dir: str) -> None:
    """Print the counts of the baseline NAME."""
    from rich.table import Table

    from eaglebench.bench.baseline import open_baseline
    from eaglebench.cli.console import stdout_console

    found = open_baseline(Path(output_dir), name)
    click.echo(f"{found.suite}, made of {found.created_from}: {found.reason}")
    for fact, value in sorted(found.exact.items()):
        click.echo(f"  {fact}: {value}")
    table = Table("cell", "arm", "questions", "accept. length", "verify steps", "cached", "pages")
    for arm in found.arms:
        length = arm.acceptance_length
        table.add_row(
            arm.cell_id,
            arm.arm,
            str(len(arm.questions)),
            "-" if length is None else f"{length:.4f}",
            *(
                str(arm.counters.get(c, "-"))
                for c in ("verify_steps", "cached_tokens", "pages_allocated")
            ),
        )
    stdout_console().print(table)


@baseline.command(cls=StatedCommand, needs=always("output_dir"))
@click.argument("name")
@click.argument("run", default="latest")
@_OUTPUT
def diff(name: str, run: str, output_dir: str) -> int:
    """Show what RUN would change in the baseline NAME, and exit with the gate's verdict."""
    return _print_diff(name, run, output_dir)


@baseline.command(cls=StatedCommand, needs=always("output_dir"))
@click.argument("name")
@_OUTPUT
def rm(name: str, output_dir: str) -> None:
    """Delete the baseline NAME."""
    from eaglebench.bench.baseline import delete_baseline

    click.echo(f"deleted {delete_baseline(Path(output_dir), name)}")


def _print_diff(name: str, run: str, output_dir: str) -> int:
    from eaglebench.bench.api import judge
    from eaglebench.cli.console import notice
    from eaglebench.cli.shown_verdict import show_verdict

    judgement = judge(run, baseline=name, output_dir=output_dir, notice=notice)
    return show_verdict(judgement)


def _write(
    name: str, run: str, reason: str | None, output_dir: str, allowed: "Allowed", runs: int
) -> None:
    from eaglebench.bench.api import load
    from eaglebench.bench.baseline import save_baseline
    from eaglebench.cli.console import notice

    folder = load(run, output_dir=output_dir, notice=notice).folder
    path, made = save_baseline(
        Path(output_dir), name, folder, reason, allowed, runs=runs, notice=notice
    )
    size = sized(path.stat().st_size)
    click.echo(f"{path}: {counted(len(made.arms), 'pair')} of cell and arm, {size}")
