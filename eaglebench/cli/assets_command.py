"""`eaglebench assets`: what can be had by name, fetched, verified, found."""

import json
from pathlib import Path

import click
from rich.table import Table

from eaglebench.assets.catalog import CATALOG, Asset, asset
from eaglebench.assets.fetch import ensure_asset, verify_asset
from eaglebench.cli.console import stdout_console
from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.progress_display import download_display
from eaglebench.errors import AssetError, UsageError
from eaglebench.records.words import sized

ASSET_NAME = click.Choice(tuple(CATALOG))


@click.group()
def assets() -> None:
    """Models, heads and questions that can be had by name."""


@assets.command("list", cls=StatedCommand, needs=always("output_format"))
@click.option(
    "--format", "output_format", type=click.Choice(("table", "json")), default="table", help="How."
)
def list_assets(output_format: str) -> None:
    """What there is, and what is on this machine."""
    if output_format == "json":
        click.echo(json.dumps([_facts(wanted) for wanted in CATALOG.values()], indent=1))
        return
    table = Table("asset", "kind", "state", "size", "what it is", box=None, pad_edge=False)
    for wanted in CATALOG.values():
        table.add_row(wanted.name, wanted.kind, _state(wanted), _size(wanted), wanted.description)
    stdout_console().print(table)


@assets.command(cls=StatedCommand, needs=always("source", "force"))
@click.argument("names", type=ASSET_NAME, nargs=-1, required=True)
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A wheel, or the file inside it, for machines without a network.",
)
@click.option("--force", is_flag=True, help="Fetch again what is here already.")
def fetch(names: tuple[str, ...], source: Path | None, *, force: bool) -> None:
    """Fetch NAMES into the cache folder and verify them."""
    if source is not None and len(names) > 1:
        raise UsageError("--from holds one asset; expected one name", hint="fetch them one by one")
    for name in names:
        wanted = asset(name)
        with download_display() as listener:
            path = ensure_asset(wanted, listener, source=source, again=force)
        verify_asset(wanted)
        click.echo(path)


@assets.command(cls=StatedCommand, needs={})
@click.argument("names", type=ASSET_NAME, nargs=-1)
def verify(names: tuple[str, ...]) -> None:
    """Check NAMES, or everything that is here, against the recorded SHA-256."""
    failed = []
    for wanted in [CATALOG[name] for name in names] or _present():
        try:
            path = verify_asset(wanted)
        except AssetError as error:
            failed.append(wanted.name)
            click.echo(f"{wanted.name}: {error.message}", err=True)
        else:
            state = "ships with the package" if wanted.ships else "ok"
            click.echo(f"{wanted.name}: {state}: {path}")
    if failed:
        raise AssetError(
            f"not as it should be: {', '.join(failed)}",
            hint=f"run: eaglebench assets fetch --force {' '.join(failed)}",
        )


@assets.command(cls=StatedCommand, needs={})
@click.argument("name", type=ASSET_NAME)
def path(name: str) -> None:
    """Where NAME lies on this machine."""
    wanted = asset(name)
    found = wanted.path
    if not found.exists():
        raise AssetError(f"{name} is not here", hint=f"run: eaglebench assets fetch {name}")
    click.echo(found)


def _present() -> list[Asset]:
    return [wanted for wanted in CATALOG.values() if wanted.path.exists()]


def _facts(wanted: Asset) -> dict[str, str | None]:
    return {
        "name": wanted.name,
        "kind": wanted.kind,
        "description": wanted.description,
        "licence": wanted.licence,
        "state": _state(wanted),
        "path": str(wanted.path),
        "source": wanted.wheel.requirement if wanted.wheel else None,
        "sha256": wanted.wheel.sha256 if wanted.wheel else None,
        "draft": wanted.draft,
    }


def _state(wanted: Asset) -> str:
    if wanted.path.exists():
        return "packaged" if wanted.ships else "here"
    return "missing" if wanted.ships else "to fetch"


def _size(wanted: Asset) -> str:
    """What it takes here, or what is to be downloaded."""
    found = wanted.path
    if found.is_dir():
        size = sum(p.stat().st_size for p in found.iterdir() if p.is_file())
    elif found.exists():
        size = found.stat().st_size
    elif wanted.wheel is not None:
        size = wanted.wheel.wheel_bytes
    else:
        return ""
    return sized(size)
