"""The JSON files of a model's folder, as `transformers` is going to read them.

A byte order mark is nothing that a person would see, but `transformers` refuses a file for it or
passes the file over without a word, so it is given a folder of links in which such files lie
without theirs.

`transformers` validates what its dataclasses declare and fails somewhere deep over the rest, with a
message that names no field. The fields that every family has in common are held to their kinds here;
the maths of a field is the family's own, and `proof.py` sees to it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from eaglebench.errors import CheckpointError, InputFileError
from eaglebench.files import read_json_object, read_text

MODEL_FILES = (
    "config.json",
    "generation_config.json",
    "model.safetensors.index.json",
    "pytorch_model.bin.index.json",
)
TOKENIZER_FILES = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.json",
)
TEMPLATE_FILES = ("chat_template.jinja", "additional_chat_templates/*.jinja")
_MARK = b"\xef\xbb\xbf"


@contextmanager
def readable(
    folder: Path, json_files: Sequence[str], text_files: Sequence[str] = ()
) -> Iterator[Path]:
    """The folder, or one like it whose files have no byte order marks; its JSON is JSON.

    Args:
        folder: what the user named; passed on as it is if it is no folder (a Hub id).
        json_files: names of files that have to hold a JSON object where they are there.
        text_files: patterns of other files that have to be text.

    Raises:
        InputFileError: a file is no text, or no JSON object.
        CheckpointError: the folder of links can't be made.
    """
    if not folder.is_dir():
        yield folder
        return
    named = [folder / name for name in json_files if (folder / name).is_file()]
    texts = [path for pattern in text_files for path in sorted(folder.glob(pattern))]
    for path in named:
        read_json_object(path)
    for path in texts:
        read_text(path)
    marked = [path for path in (*named, *texts) if path.read_bytes().startswith(_MARK)]
    if not marked:
        yield folder
        return
    with TemporaryDirectory(prefix="eaglebench-") as name:
        _link(folder, Path(name), marked)
        yield Path(name)


def _link(folder: Path, copy: Path, marked: Sequence[Path]) -> None:
    """Every file of `folder` by a link, those with a mark written anew."""
    try:
        for path in folder.rglob("*"):
            place = copy / path.relative_to(folder)
            if path.is_dir():
                place.mkdir(exist_ok=True)
            elif path in marked:
                place.write_text(read_text(path), encoding="utf-8")
            else:
                place.symlink_to(path.resolve())
    except OSError as error:
        names = ", ".join(path.name for path in marked)
        raise CheckpointError(
            f"{folder}: {names} begin with a byte order mark, and no copy without can be made "
            f"({error})",
            hint="save them as UTF-8 without a mark",
        ) from error


_PARTS = ("text_config", "llm_config", "language_config")
"""Where models of several kinds of input keep the language model's fields."""


def check_config(path: Path, config: Mapping[str, Any]) -> None:
    """Hold the known fields of a config to their kinds; a field that is null or absent is fine.

    Raises:
        InputFileError: one is of another kind; with its name, its value and what was expected.
    """
    for name, value in config.items():
        if value is None or name not in _KINDS:
            continue
        fits, expected = _KINDS[name]
        if not fits(value):
            raise InputFileError(path, f"{name} is {value!r}; expected {expected}")
    for part in _PARTS:
        inner = config.get(part)
        if isinstance(inner, Mapping):
            check_config(path, inner)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are(value: object, kind: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and all(map(kind, value))


_BY_KIND: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "vocab_size hidden_size num_hidden_layers max_position_embeddings n_positions n_embd n_layer": (
        _is_count,
        "a whole number above 0",
    ),
    "num_attention_heads num_key_value_heads intermediate_size head_dim": (
        lambda value: _is_count(value) or _are(value, _is_count),
        "a whole number above 0, or one for each layer",
    ),
    "model_type hidden_act hidden_activation": (_is_text, "a name"),
    "architectures layer_types": (lambda value: _are(value, _is_text), "a list of names"),
    "rope_parameters rope_scaling auto_map quantization_config text_config": (
        lambda value: isinstance(value, Mapping),
        "fields by name",
    ),
    "dtype torch_dtype": (
        lambda value: _is_text(value) and isinstance(getattr(torch, value, None), torch.dtype),
        "the name of a dtype, such as bfloat16",
    ),
}
_KINDS = {name: kind for names, kind in _BY_KIND.items() for name in names.split()}
