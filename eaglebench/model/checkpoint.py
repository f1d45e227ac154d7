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
_ALIASES = {
    "midlayer.": "layers.0.",  # SafeAILab, SpecForge
    "transformer.": "layers.0.",  # EAGLE-1 of speculators
    "fusion_fc.": "fc.",
    "aux_norm_low.": "fc_norm.0.",  # early heads for SGLang
    "aux_norm_mid.": "fc_norm.1.",
    "aux_norm_high.": "fc_norm.2.",
}


@dataclass(frozen=True, slots=True)
class PlacedTensors:
    """Tensors by the name of the place they belong to, and the name each has in the file.

    `ignored` holds names in the file that are known and not needed, with the reason.
    """

    tensors: dict[str, Tensor]
    sources: dict[str, str]
    ignored: dict[str, str]


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


def bare_name(name: str) -> str:
    """The name of a tensor without the prefixes that engines and trainers add."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return bare_name(name.removeprefix(prefix))
    return name


def canonical_name(name: str) -> str:
    """The name of the place a tensor belongs to, whatever project wrote it."""
    bare = bare_name(name)
    for alias, place_name in _ALIASES.items():
        if bare.startswith(alias):
            return place_name + bare.removeprefix(alias)
    return bare


def place(
    tensors: Mapping[str, Tensor],
    *,
    required: Collection[str],
    optional: Collection[str],
    ignored: Mapping[str, str],
) -> PlacedTensors:
    """Put every tensor in its place.

    Args:
        tensors: by their names in the file.
        required: places that must be filled.
        optional: places that may be filled.
        ignored: places that are known and not needed, with the reason.

    Raises:
        CheckpointError: a tensor has no place, a place no tensor, or two tensors share one.
    """
    found = PlacedTensors({}, {}, {})
    unknown: list[str] = []
    for name, tensor in sorted(tensors.items()):
        place_name = canonical_name(name)
        if place_name in ignored:
            found.ignored[name] = ignored[place_name]
        elif place_name not in required and place_name not in optional:
            unknown.append(name)
        elif place_name in found.tensors:
            raise CheckpointError(f"{name} and {found.sources[place_name]} both claim {place_name}")
        else:
            found.tensors[place_name] = tensor
            found.sources[place_name] = name
    missing = sorted(set(required) - set(found.tensors))
    if unknown or missing:
        raise CheckpointError(
            "the checkpoint does not fit: "
            f"without a place: {', '.join(unknown) or 'none'}; "
            f"missing: {', '.join(missing) or 'none'}",
            hint="expected the names of a published format (layers.0.*, midlayer.* or "
            "transformer.*, with or without a model. prefix) and what config.json asks for",
        )
    return found
