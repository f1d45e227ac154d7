"""`eaglebench baseline`: snapshots of good runs, committed beside the code."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglebench.cli.effects import StatedCommand, always, without
from eaglebench.cli.exit_codes import verdict_code
from eaglebench.errors import StorageError, UsageError

if TYPE_CHECKING:
    from eaglebench.bench.baseline import Allowed

_OUTPUT = click.option(
    "-o", "--output-dir", default="results", show_default=True, help="Where runs and baselines are."
)
_REASON = click.option("--reason", help="Why this run is the new normal; kept in the file.")
_UNTRUSTED = click.option(
    "--allow-untrusted", is_flag=True, help="Also of a run with failed or cut answers."
)
_DIRTY = click.option("--allow-dirty", is_flag=True, help="Also of code with uncommitted changes.")


@click.group()
def baseline() -> None:
    """Snapshots of good runs that later runs are judged against."""


@baseline.command(
    cls=StatedCommand, needs=always("reason", "allow_dirty", "allow_untrusted", "output_dir")
)
@click.argument("name")
@click.argument("run", default="latest")
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
    allow_dirty: bool,
    allow_untrusted: bool,
) -> None:
    """Make a baseline NAME of RUN; one that exists is changed by `accept`, not by `save`."""
    from eaglebench.bench.baseline import Allowed
    from eaglebench.store.baseline import list_baselines
    from eaglebench.store.run_folder import slug

    if slug(name) in list_baselines(Path(output_dir)):
        raise UsageError(
            f"there is a baseline {name!r} already",
            hint=f"eaglebench baseline accept {name}, which shows what changes",
        )
    allowed = Allowed(dirty=allow_dirty, untrusted=allow_untrusted)
    _write(name, run, reason, output_dir, allowed)


@baseline.command(
    cls=StatedCommand,
    needs=always("from_ci", "reason", "allow_dirty", "allow_untrusted", "output_dir")
    | {"run": without("from_ci")},
)
@click.argument("name")
@click.argument("run", default="latest")
@click.option(
    "--from-ci",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the run out of a CI artifact (a run folder, or a folder that holds one).",
)
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
    allow_dirty: bool,
    allow_untrusted: bool,
) -> None:
    """Let RUN take the place of the baseline NAME, after showing what changes."""
    from eaglebench.bench.baseline import Allowed
    from eaglebench.store.baseline import find_baseline

    find_baseline(Path(output_dir), name)
    chosen = run if from_ci is None else str(_ci_run(from_ci))
    _print_diff(name, chosen, output_dir)
    allowed = Allowed(dirty=allow_dirty, untrusted=allow_untrusted)
    _write(name, chosen, reason, output_dir, allowed)


@baseline.command("list", cls=StatedCommand, needs=always("output_dir"))
@_OUTPUT
def list_all(output_dir: str) -> None:
    """List baselines."""
    from rich.table import Table

    from eaglebench.cli.console import stdout_console
    from eaglebench.errors import InputFileError
    from eaglebench.store.baseline import baselines_folder, list_baselines, read_baseline

    root = Path(output_dir)
    names = {name: baselines_folder(root) / f"{name}.jsonl" for name in list_baselines(root)}
    if not names:
        click.echo(f"no baselines in {root / 'baselines'}; try: eaglebench baseline save NAME")
        return
    table = Table("baseline", "suite", "cells and arms", "dtype", "made of", "reason")
    for name, path in names.items():
        try:
            found = read_baseline(path)
        except InputFileError as error:
            table.add_row(name, "unreadable", "", "", "", error.message)
            continue
        dtype = str(found.workload.get("dtype"))
        arms = str(len(found.arms))
        table.add_row(name, found.suite, arms, dtype, found.created_from, found.reason)
    stdout_console().print(table)


@baseline.command(cls=StatedCommand, needs=always("output_dir"))
@click.argument("name")
@_OUTPUT
def show(name: str, output_dir: str) -> None:
    """Print the counts of the baseline NAME."""
    from rich.table import Table

    from eaglebench.cli.console import stdout_console
    from eaglebench.gate.counts import value_of
    from eaglebench.stats.metrics import ACCEPTANCE
    from eaglebench.store.baseline import find_baseline, read_baseline

    found = read_baseline(find_baseline(Path(output_dir), name))
    click.echo(f"{found.suite}, made of {found.created_from}: {found.reason}")
    for fact, value in sorted(found.exact.items()):
        click.echo(f"  {fact}: {value}")
    table = Table("cell", "arm", "questions", "accept. length", "verify steps", "cached", "pages")
    for arm in found.arms:
        length = value_of(arm, ACCEPTANCE)
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
    from eaglebench.store.baseline import find_baseline

    path = find_baseline(Path(output_dir), name)
    try:
        path.unlink()
    except OSError as error:
        raise StorageError(f"{path} can't be deleted: {error.strerror}") from error
    click.echo(f"deleted {path}")


def _print_diff(name: str, run: str, output_dir: str) -> int:
    from eaglebench.bench.api import judge
    from eaglebench.cli.console import notice, stdout_console
    from eaglebench.report.verdicts import render_judgement

    judgement = judge(run, baseline=name, output_dir=output_dir, notice=notice)
    render_judgement(judgement, stdout_console())
    return verdict_code(judgement.verdict)


def _write(name: str, run: str, reason: str | None, output_dir: str, allowed: "Allowed") -> None:
    from eaglebench.bench.baseline import fit_for_baseline
    from eaglebench.cli.console import notice
    from eaglebench.files import escaped
    from eaglebench.store.baseline import write_baseline
    from eaglebench.store.run_folder import find_run

    snapshot = fit_for_baseline(find_run(Path(output_dir), run), allowed, notice=notice)
    if not (reason and reason.strip()):
        raise UsageError(
            "a baseline needs a reason, for those who read its history",
            hint='--reason "rebase on #123"',
        )
    path = write_baseline(Path(output_dir), name, snapshot, escaped(reason.strip()))
    click.echo(f"{path}: {len(snapshot.arms)} cells and arms, {path.stat().st_size} bytes")


def _ci_run(folder: Path) -> Path:
    """The one run below an artifact folder."""
    if (folder / "run.json").is_file():
        return folder
    found = sorted(path.parent for path in folder.rglob("run.json"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise UsageError(f"{folder} holds {len(found)} runs ({names}); expected one")
    return found[0]
