"""Reading a checkpoint folder and accounting for every tensor in it.

safetensors is preferred, sharded or not; a `.bin` is read only with `weights_only=True`, so that
no code in a pickle can run. A tensor that can't be placed, or a place without a tensor, is an error
that lists both sides: a renamed key must never leave random weights behind.
"""

import json
import pickle
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from eaglebench.errors import CheckpointError

READER_ERRORS = (
    OSError,
    RuntimeError,
    ValueError,
    EOFError,
    SafetensorError,
    pickle.UnpicklingError,
)
"""What the readers of both formats raise for a file that is missing, broken or unsafe."""

_PREFIXES = ("draft_model.", "model.")
_ALIASES = {"layers.0.": "midlayer."}


@dataclass(frozen=True, slots=True)
class PlacedTensors:
    """Tensors by the name of the place they belong to, and the file name each came from."""

    tensors: dict[str, Tensor]
    sources: dict[str, str]


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of a checkpoint folder by the names in the file.

    Raises:
        CheckpointError: no checkpoint is there, or it can't be read safely.
    """
    files = _weight_files(folder)
    tensors: dict[str, Tensor] = {}
    for path in files:
        try:
            loaded = (
                load_file(path)
                if path.suffix == ".safetensors"
                else torch.load(path, map_location="cpu", weights_only=True)
            )
        except READER_ERRORS as error:
            raise CheckpointError(
                f"{path} can't be read: {error}",
                hint="a .bin is read without running code in it; convert it to safetensors",
            ) from error
        tensors.update(loaded)
    return tensors


def _weight_files(folder: Path) -> list[Path]:
    for stem, suffix in (("model", "safetensors"), ("pytorch_model", "bin")):
        index = folder / f"{stem}.{suffix}.index.json"
        if index.is_file():
            names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
            return [folder / name for name in names]
        single = folder / f"{stem}.{suffix}"
        if single.is_file():
            return [single]
    for pattern in ("*.safetensors", "*.bin"):
        found = sorted(folder.glob(pattern))
        if found:
            return found
    raise CheckpointError(
        f"{folder} holds no checkpoint",
        hint="expected model.safetensors, a sharded index, or pytorch_model.bin",
    )


def canonical_name(name: str) -> str:
    """The published name of a tensor, without the prefixes and aliases engines add."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return canonical_name(name.removeprefix(prefix))
    for alias, published in _ALIASES.items():
        if name.startswith(alias):
            return published + name.removeprefix(alias)
    return name


def place(
    tensors: Mapping[str, Tensor], *, required: Collection[str], optional: Collection[str]
) -> PlacedTensors:
    """Put every tensor in its place.

    Raises:
        CheckpointError: a tensor has no place, a place no tensor, or two tensors share one.
    """
    placed: dict[str, Tensor] = {}
    sources: dict[str, str] = {}
    unknown: list[str] = []
    for name, tensor in sorted(tensors.items()):
        place_name = canonical_name(name)
        if place_name not in required and place_name not in optional:
            unknown.append(name)
            continue
        if place_name in placed:
            raise CheckpointError(f"{name} and {sources[place_name]} both claim {place_name}")
        placed[place_name] = tensor
        sources[place_name] = name
    missing = sorted(set(required) - set(placed))
    if unknown or missing:
        raise CheckpointError(
            "the checkpoint does not fit: "
            f"without a place: {', '.join(unknown) or 'none'}; "
            f"missing: {', '.join(missing) or 'none'}",
            hint="expected the names of the published EAGLE-3 format "
            "(midlayer.* or layers.0.*, with or without a model. prefix)",
        )
    return PlacedTensors(placed, sources)
