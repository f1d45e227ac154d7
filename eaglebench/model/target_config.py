"""What a target's config says: windows and sinks, rotary tables, end tokens.

`transformers` names windows in `layer_types` and `sliding_window`. Llama's own attention passes
neither window nor sinks on, so a hybrid made of it is read here, layer by layer, from the same fields
and from `attention_sinks`: the name of a safetensors file beside the weights, [window layers, heads].

Rotary tables may change with the length of what is computed:

    default, linear, llama3, yarn, proportional      one table for every length
    longrope                                         another one past the original context
    dynamic                                          a new one for every length past it

`transformers` chooses the table by the longest row of a forward. Rows of unlike length in one batch
would take each other's table, and cached keys would keep the one they were written with, so a
target with such a kind is computed as far as there is one table and no farther.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedModel

from eaglebench.errors import CheckpointError

SINKS = "attention_sinks"
EXTENDED_MODEL_TYPES = frozenset({"llama"})
"""Families whose `layer_types` their own attention does not read, and ours does, as in vLLM."""
_SLIDING = "sliding_attention"
_KNOWN = {_SLIDING, "full_attention"}
STATIC_KINDS = frozenset({"default", "linear", "llama3", "yarn", "proportional"})
CHANGING_KINDS = frozenset({"longrope", "dynamic"})
_ORIGINAL = "original_max_position_embeddings"


@dataclass(frozen=True, slots=True)
class LayerForm:
    """What a layer sees: `window` positions (None is all), and a sink logit a head if it has any."""

    window: int | None = None
    sinks: Tensor | None = None


def layer_forms(config: Any, sinks: Tensor | None = None) -> tuple[LayerForm, ...]:
    """The form of every layer; `sinks` are [window layers, heads], in order.

    Raises:
        CheckpointError: a layer type is unknown, or windows or sinks don't fit the layers.
    """
    types = _layer_types(config)
    unknown = sorted(set(types) - _KNOWN)
    if unknown:
        raise CheckpointError(
            f"layers of type {', '.join(unknown)} can't be computed here "
            f"(model_type {getattr(config, 'model_type', None)})"
        )
    windowed = [index for index, kind in enumerate(types) if kind == _SLIDING]
    window = getattr(config, "sliding_window", None)
    if windowed and not (isinstance(window, int) and window >= 1):
        raise CheckpointError(f"sliding_window is {window!r}; expected at least 1")
    if sinks is not None and sinks.shape != (len(windowed), config.num_attention_heads):
        raise CheckpointError(
            f"{SINKS} has shape {tuple(sinks.shape)}; expected {len(windowed)} window layers x "
            f"{config.num_attention_heads} heads"
        )
    forms = [LayerForm()] * len(types)
    for number, index in enumerate(windowed):
        forms[index] = LayerForm(window, None if sinks is None else sinks[number])
    return tuple(forms)


def is_extended(config: Any, sinks: Tensor | None) -> bool:
    """Whether windows or sinks are given on purpose that the family's own code does not know."""
    types = getattr(config, "layer_types", None)
    return sinks is not None or (config.model_type in EXTENDED_MODEL_TYPES and types is not None)


def _layer_types(config: Any) -> list[str]:
    """One type a layer; a model that names a window and no types has it in every layer."""
    count = int(config.num_hidden_layers)
    types = getattr(config, "layer_types", None)
    if types is not None:
        if len(types) != count:
            raise CheckpointError(f"layer_types names {len(types)} layers; the model has {count}")
        return list(types)
    has_window = getattr(config, "sliding_window", None) is not None
    if has_window and getattr(config, "use_sliding_window", True):
        return [_SLIDING] * count
    return ["full_attention"] * count


def read_sinks(folder: Path, config: Any) -> Tensor | None:
    """The sinks that a config names; None where it names none.

    Raises:
        CheckpointError: the file is missing, broken, or holds something else.
    """
    name = getattr(config, SINKS, None)
    if name is None:
        return None
    path = folder / str(name)
    try:
        sinks = load_file(path)[SINKS]
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} can't be read: {error}") from error
    except KeyError as error:
        raise CheckpointError(f"{path} holds no tensor {SINKS!r}") from error
    if not bool(torch.isfinite(sinks).all()):
        raise CheckpointError(f"{path} holds sinks that are NaN or infinite")
    return sinks


def kinds_by_length(config: Any) -> tuple[tuple[str, int], ...]:
    """The kinds that change with the length, each with the positions up to which it is one table.

    Raises:
        CheckpointError: a kind is unknown, or does not say where it changes.
    """
    found: list[tuple[str, int]] = []
    for parameters in _rope_blocks(config):
        kind = parameters.get("rope_type", parameters.get("type", "default"))
        if kind in CHANGING_KINDS:
            found.append((kind, _end_of_table(config, kind, parameters)))
        elif kind not in STATIC_KINDS:
            raise CheckpointError(
                f"rope_type {kind!r} can't be computed here",
                hint=f"known: {', '.join(sorted(STATIC_KINDS | CHANGING_KINDS))}",
            )
    return tuple(sorted(set(found)))


def table_limit(config: Any) -> int | None:
    """Positions up to which every row has one table; None where that is all of them."""
    return min((limit for _, limit in kinds_by_length(config)), default=None)


def context_length(config: Any) -> int:
    """Most positions: those the model was made for, of one rotary table."""
    positions, limit = int(config.max_position_embeddings), table_limit(config)
    return positions if limit is None else min(positions, limit)


def _rope_blocks(config: Any) -> list[Mapping[str, Any]]:
    """One block of parameters, or one for each type of layer."""
    given = getattr(config, "rope_parameters", None) or {}
    if not isinstance(given, Mapping):
        raise CheckpointError(f"rope_parameters is {given!r}; expected fields by name")
    return [each for each in given.values() if isinstance(each, Mapping)] or [given]


def _end_of_table(config: Any, kind: str, parameters: Mapping[str, Any]) -> int:
    given = parameters.get(_ORIGINAL) or getattr(config, _ORIGINAL, None)
    end = given or config.max_position_embeddings
    if not isinstance(end, int) or end < 1:
        raise CheckpointError(f"{kind} needs {_ORIGINAL}; found {given!r}")
    return end


def stop_token_ids(model: PreTrainedModel) -> tuple[int, ...]:
    """End tokens of the generation config and of the config, in order: one id, several, or none.

    Raises:
        CheckpointError: one is no token id.
    """
    found: set[int] = set()
    for name, source in (
        ("generation_config.json", getattr(model, "generation_config", None)),
        ("config.json", model.config),
        ("config.json", model.config.get_text_config()),
    ):
        value = getattr(source, "eos_token_id", None)
        ids = value if isinstance(value, list | tuple) else [] if value is None else [value]
        if not all(isinstance(each, int) and not isinstance(each, bool) for each in ids):
            raise CheckpointError(
                f"{name}: eos_token_id is {value!r}; expected a token id or a list of them"
            )
        found.update(ids)
    return tuple(sorted(found))


def config_warnings(config: Any, stop_ids: Sequence[int]) -> tuple[str, ...]:
    """What the user should know of this target: changing tables, end tokens that nothing can choose."""
    warnings = [
        f"its rotary kind {kind} changes with the length; the context ends at {end} positions, up to "
        "which every row has one table"
        for kind, end in kinds_by_length(config)
    ]
    size = int(config.vocab_size)
    beyond = ", ".join(str(each) for each in stop_ids if not 0 <= each < size)
    if beyond:
        warnings.append(
            f"end token {beyond} is outside the target's vocabulary of {size}: it never comes"
        )
    return tuple(warnings)
