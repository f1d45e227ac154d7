"""What a converted folder held when it was written: `manifest.json` beside its files."""

import json
from pathlib import Path

from eaglebench.assets.cache import file_sha256
from eaglebench.errors import AssetError

MANIFEST = "manifest.json"


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
