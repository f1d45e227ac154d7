"""A target made of another one: its weights, linked, and the files that ship with the package."""

import json
import os
import shutil
from pathlib import Path

from eaglebench.assets.manifest import MANIFEST, write_manifest

_CONFIG = "config.json"
_CARD = "README.md"


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
