"""Where assets live on this machine, and digests of what lies there."""

import hashlib
import json
import os
from pathlib import Path

from platformdirs import user_cache_path

import eaglebench

CACHE_VARIABLE = "EAGLEBENCH_CACHE"
_BLOCK = 1 << 20
_NOT_SAID_OF_MODELS = {"_name_or_path", "transformers_version"}
_WEIGHTS = (".safetensors", ".bin", ".gguf")


def cache_root() -> Path:
    """The user's cache folder; `EAGLEBENCH_CACHE` overrides it."""
    override = os.environ.get(CACHE_VARIABLE)
    return Path(override) if override else user_cache_path("eaglebench")


def child_environment(scratch: Path) -> dict[str, str]:
    """This process's environment, with temporary files kept in `scratch`."""
    return os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))


def packaged_root() -> Path:
    """Assets that ship with the package."""
    return Path(eaglebench.__file__).parent / "data"


def file_sha256(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def model_sha256(folder: Path) -> str:
    """One digest over a model folder's weight files; kept by size and time of change.

    Hashing half a gigabyte before every run would cost seconds, so the digest of a file that has
    not changed since is read from the cache folder.
    """
    files = sorted(p for p in folder.iterdir() if p.suffix in _WEIGHTS)
    combined = hashlib.sha256()
    known = _read_known()
    changed = False
    for path in files:
        stat = path.stat()
        name = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
        if name not in known:
            known[name] = file_sha256(path)
            changed = True
        combined.update(known[name].encode())
    if changed:
        _write_known(known)
    return combined.hexdigest()


def config_sha256(folder: Path) -> str | None:
    """A digest of what a model's `config.json` says; None where there is none that can be read.

    Two spellings of one content are one: order and spaces don't count, nor do the names of the
    folder it was saved from and of the library that saved it.
    """
    try:
        # a byte order mark is no content
        loaded = json.loads((folder / "config.json").read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return None
    if not isinstance(loaded, dict):
        return None
    said = {name: value for name, value in loaded.items() if name not in _NOT_SAID_OF_MODELS}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _known_path() -> Path:
    return cache_root() / "digests.json"


def _read_known() -> dict[str, str]:
    try:
        loaded = json.loads(_known_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _write_known(known: dict[str, str]) -> None:
    """Best effort: a read-only cache folder only costs the time to hash again."""
    path = _known_path()
    partial = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(known), encoding="utf-8")
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
