"""Fields of a target's config.json whose kind everyone knows, checked before `transformers` stumbles.

`transformers` validates what its dataclasses declare and fails somewhere deep over the rest, with a
message that names no field. What is checked here is what every family has in common; the maths of a
field is the family's own, and `proof.py` sees to it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from eaglebench.errors import InputFileError

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


def _is_counts(value: object) -> bool:
    """Some families have a size of each layer."""
    return _is_count(value) or (isinstance(value, list) and all(map(_is_count, value)))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_fields(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_dtype(value: object) -> bool:
    return isinstance(value, str) and isinstance(getattr(torch, value, None), torch.dtype)


_Kind = tuple[Callable[[object], bool], str]
_COUNT: _Kind = (_is_count, "a whole number above 0")
_COUNTS: _Kind = (_is_counts, "a whole number above 0, or one for each layer")
_TEXT: _Kind = (_is_text, "a name")
_TEXTS: _Kind = (_is_texts, "a list of names")
_FIELDS: _Kind = (_is_fields, "fields by name")
_DTYPE: _Kind = (_is_dtype, "the name of a dtype, such as bfloat16")
_KINDS: dict[str, _Kind] = {
    **dict.fromkeys(("vocab_size", "hidden_size", "num_hidden_layers"), _COUNT),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_embd", "n_layer"), _COUNT),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads", "intermediate_size"), _COUNTS),
    **dict.fromkeys(("head_dim",), _COUNTS),
    **dict.fromkeys(("model_type", "hidden_act", "hidden_activation"), _TEXT),
    **dict.fromkeys(("architectures", "layer_types"), _TEXTS),
    **dict.fromkeys(("rope_parameters", "rope_scaling", "auto_map"), _FIELDS),
    **dict.fromkeys(("quantization_config", "text_config"), _FIELDS),
    **dict.fromkeys(("dtype", "torch_dtype"), _DTYPE),
}
