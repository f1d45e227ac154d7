"""The weight files of a target, looked at before `transformers` reads them.

`transformers` reports what a model lacks and what a file holds beyond it. It does not say that an
index names tensors which no file holds, and it casts whatever numbers it finds; both are seen here
in the headers, without reading weights. A file that is no checkpoint is named.
"""

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open

from eaglebench.errors import CheckpointError
from eaglebench.files import read_json_object
from eaglebench.model.checkpoint import hint_for, read_index, size_of

_FLOATS = frozenset({"F64", "F32", "F16", "BF16"})
_SINGLE = ("model.safetensors", "pytorch_model.bin")
_INDEXED = (("model", "safetensors"), ("pytorch_model", "bin"))
_NO_META = 'add "metadata": {} to it'


def check_weight_files(folder: Path, *, is_quantized: bool) -> None:
    """Look at the headers of the files that `transformers` is going to take.

    Args:
        folder: the model's.
        is_quantized: its config says so; then weights may be other numbers than floats.

    Raises:
        CheckpointError: a file is missing, cut, or no checkpoint; an index names what is not there;
            a weight is no float.
    """
    if (folder / _SINGLE[0]).is_file():
        _check_numbers(folder / _SINGLE[0], is_quantized=is_quantized)
        return
    for stem, suffix in _INDEXED:
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
            f"{index} has no metadata, which transformers asks for", hint=_NO_META
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
        raise CheckpointError(
            f"{path} ({size_of(path)}) can't be read: {error}", hint=hint_for(path)
        ) from error
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
    hint = hint_for(path)
    if path.stat().st_size == 0:
        raise CheckpointError(f"{path} is empty")
    if hint is not None and "LFS" in hint:
        raise CheckpointError(f"{path} is no checkpoint", hint=hint)
