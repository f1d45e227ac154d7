"""Folders that are made here: what each held when it was written, and one made of another."""

import json
import os
import shutil
from pathlib import Path

from eaglebench.assets.cache import file_sha256
from eaglebench.errors import AssetError

MANIFEST = "manifest.json"
_CONFIG = "config.json"
_CARD = "README.md"


def write_manifest(folder: Path, source_sha256: str) -> None:
    """Record the digest of the source and of every file made from it."""
    files = {path.name: file_sha256(path) for path in sorted(folder.iterdir())}
    recorded = {"source_sha256": source_sha256, "files": files}
    (folder / MANIFEST).write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")


def check_manifest(folder: Path, name: str, source_sha256: str) -> None:
    """Compare a folder with its manifest.

    Raises:
        AssetError: the source was another one, or a file is missing or has changed.
    """
    again = f"run: eaglebench assets fetch {name} --force"
    try:
        recorded = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        source, files = recorded["source_sha256"], dict(recorded["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AssetError(f"{folder / MANIFEST} can't be read: {error}", hint=again) from error
    if source != source_sha256:
        raise AssetError(
            f"{folder} was made from a file with SHA-256 {source}; expected {source_sha256}",
            hint=again,
        )
    for file_name, expected in files.items():
        path = folder / file_name
        found = file_sha256(path) if path.is_file() else None
        if found != expected:
            state = "is missing" if found is None else f"has SHA-256 {found}"
            raise AssetError(f"{path} {state}; expected {expected}", hint=again)


def derive_folder(base: Path, changes: Path, folder: Path, source_sha256: str) -> None:
    """Write `folder`: the base's files, its config with other fields, and what comes with those.

    `changes` holds the fields in a `config.json` of its own, and the files they name.
    """
    folder.mkdir()
    for path in sorted(base.iterdir()):
        if path.name not in {_CONFIG, MANIFEST}:
            _link(path, folder / path.name)
    config = json.loads((base / _CONFIG).read_text(encoding="utf-8"))
    config |= json.loads((changes / _CONFIG).read_text(encoding="utf-8"))
    (folder / _CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    for path in sorted(changes.iterdir()):
        if path.name not in {_CONFIG, _CARD}:
            shutil.copy(path, folder / path.name)
    write_manifest(folder, source_sha256)


def _link(source: Path, target: Path) -> None:
    """One file on disk under two names, or a copy where the file system has no such thing."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)
