"""Reading a checkpoint folder and accounting for every tensor in it.

safetensors is preferred, sharded or not; a `.bin` is read only with `weights_only=True`, so that
no code in a pickle can run. A tensor that can't be placed, or a place without a tensor, is an error
that lists both sides: a renamed key must never leave random weights behind.

`transformers` reads a target's files itself and reports what a model lacks and what a file holds
beyond it. It does not say that an index names tensors which no file holds, and it casts whatever
numbers it finds; both are seen here in the headers, without reading weights.
"""

import json
import pickle
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from eaglebench.errors import CheckpointError
from eaglebench.files import read_json_object

_FAULTS = (OSError, RuntimeError, ValueError, EOFError, SafetensorError, pickle.UnpicklingError)
"""What the readers of both formats raise for a file that is missing, broken or unsafe."""
_FORMATS = (("model", "safetensors"), ("pytorch_model", "bin"))
_FLOATS = frozenset({"F64", "F32", "F16", "BF16"})

_LENGTH_BYTES = 8
_LFS_POINTER = b"version https://git-lfs"
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
        CheckpointError: no checkpoint is there, it can't be read safely, is not whole, or holds
            something else than plain weights.
    """
    names, files = _weight_files(folder)
    tensors: dict[str, Tensor] = {}
    for path in files:
        tensors.update(_read_file(path))
    missing = sorted(names - set(tensors))
    if missing:
        raise CheckpointError(
            f"the index in {folder} names tensors that no file holds: {', '.join(missing)}"
        )
    return tensors


def _read_file(path: Path) -> dict[str, Tensor]:
    try:
        loaded = (
            load_file(path)
            if path.suffix == ".safetensors"
            else torch.load(path, map_location="cpu", weights_only=True)
        )
    except _FAULTS as error:
        raise _unreadable(path, error) from error
    if not isinstance(loaded, dict):
        raise CheckpointError(f"{path} holds a {type(loaded).__name__}; expected tensors by name")
    for name, tensor in loaded.items():
        if not isinstance(tensor, Tensor):
            raise CheckpointError(
                f"{path}: {name} is a {type(tensor).__name__}; expected tensors by name",
                hint="a trainer's state is not a checkpoint; save its state_dict alone",
            )
    return loaded


def _unreadable(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{path} ({_size_of(path)}) can't be read: {error}", hint=_hint_for(path)
    )


def _size_of(path: Path) -> str:
    """A file's size, and beside it the size that a safetensors header asks for, if it is another.

    The header is its length (8 bytes, little endian), then JSON with the `data_offsets` of each
    tensor behind it: https://huggingface.co/docs/safetensors.
    """
    if not path.is_file():
        return "no file"
    found = path.stat().st_size
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            header = json.loads(file.read(min(length, found)))
        ends = [
            entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"
        ]
        expected = _LENGTH_BYTES + length + max(ends, default=0)
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return f"{found} bytes"  # no header of that kind
    return (
        f"{found} bytes" if expected == found else f"{found} bytes; its header asks for {expected}"
    )


def _hint_for(path: Path) -> str | None:
    """What to try about a weight file that can't be read."""
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
                return "it is a pointer of Git LFS, not the file; try git lfs pull"
    if path.suffix == ".bin":
        return "a .bin is read without running code in it; convert it to safetensors"
    return None


def _weight_files(folder: Path) -> tuple[frozenset[str], list[Path]]:
    """The tensors that an index names, none without one, and the files to read."""
    for stem, suffix in _FORMATS:
        index = folder / f"{stem}.{suffix}.index.json"
        if index.is_file():
            weight_map = read_index(index, suffix)
            files = [folder / name for name in sorted(set(weight_map.values()))]
            return frozenset(weight_map), files
        single = folder / f"{stem}.{suffix}"
        if single.is_file():
            return frozenset(), [single]
    for pattern in ("*.safetensors", "*.bin"):
        found = sorted(folder.glob(pattern))
        if found:
            return frozenset(), found
    raise CheckpointError(
        f"{folder} holds no checkpoint",
        hint="expected model.safetensors, a sharded index, or pytorch_model.bin",
    )


def read_index(index: Path, suffix: str) -> dict[str, str]:
    """Tensor to file; a CheckpointError if it is no index, or names files elsewhere."""
    try:
        weight_map: dict[str, str] = json.loads(index.read_text(encoding="utf-8-sig"))["weight_map"]
        files = {Path(name) for name in weight_map.values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{index} is not the index of a checkpoint: expected weight_map, a file for each tensor"
        ) from error
    for file in sorted(files):
        if file.name != str(file) or file.suffix != f".{suffix}":
            raise CheckpointError(f"{index} names {file}; expected a .{suffix} file beside it")
    return weight_map


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
    """Put every tensor, by its name in the file, in its place.

    `ignored` has places that are known and not needed, with the reason.

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


def check_weight_files(folder: Path, *, is_quantized: bool) -> None:
    """Look at the headers of the files that `transformers` is going to take.

    Weights may be other numbers than floats only where the config says that they are quantized.

    Raises:
        CheckpointError: a file is missing, cut, or no checkpoint; an index names what is not there;
            a weight is no float.
    """
    if (folder / "model.safetensors").is_file():
        _check_numbers(folder / "model.safetensors", is_quantized=is_quantized)
        return
    for stem, suffix in _FORMATS:
        index = folder / f"{stem}.{suffix}.index.json"
        if index.is_file():
            _check_index(index, read_index(index, suffix), is_quantized=is_quantized)
            return
        single = folder / f"{stem}.{suffix}"
        if single.is_file():
            _check_is_whole(single)
            return


def _check_index(index: Path, weight_map: Mapping[str, str], *, is_quantized: bool) -> None:
    if not weight_map:
        raise CheckpointError(f"{index} names no tensors")
    if "metadata" not in read_json_object(index):
        raise CheckpointError(
            f"{index} has no metadata, which transformers asks for", hint='add "metadata": {} to it'
        )
    found: set[str] = set()
    for name in sorted(set(weight_map.values())):
        path = index.parent / name
        if not path.is_file():
            raise CheckpointError(f"{index} names {name}, which is not there")
        if path.suffix != ".safetensors":
            _check_is_whole(path)
            return
        found |= _check_numbers(path, is_quantized=is_quantized)
    missing = sorted(set(weight_map) - found)
    if missing:
        raise CheckpointError(
            f"{index} names {len(missing)} tensors that no file holds: {', '.join(missing[:5])}"
        )


def _check_numbers(path: Path, *, is_quantized: bool) -> set[str]:
    """The names in a safetensors file, whose header says that it is whole."""
    try:
        with safe_open(path, framework="pt") as file:
            kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from error
    other = {name: kind for name, kind in sorted(kinds.items()) if kind not in _FLOATS}
    if other and not is_quantized:
        name, kind = next(iter(other.items()))
        raise CheckpointError(
            f"{path}: {name} holds numbers of type {kind}; expected floats, since config.json names "
            "no quantization_config"
        )
    return set(kinds)


def _check_is_whole(path: Path) -> None:
    """A pickle has no header; what it can be taken for by mistake has."""
    hint = _hint_for(path)
    if path.stat().st_size == 0:
        raise CheckpointError(f"{path} is empty")
    if hint is not None and "LFS" in hint:
        raise CheckpointError(f"{path} is no checkpoint", hint=hint)
