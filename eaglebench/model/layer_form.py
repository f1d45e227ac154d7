"""Which layers of a target see a window only, and with which sinks.

`transformers` says it in `layer_types` and `sliding_window`. Llama's own attention passes neither
window nor sinks on, so a hybrid made of it is read here, layer by layer, from the same fields and
from `attention_sinks`: the name of a safetensors file beside the weights, [window layers, heads].
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from eaglebench.errors import CheckpointError

SINKS = "attention_sinks"
EXTENDED_MODEL_TYPES = frozenset({"llama"})
"""Families whose `layer_types` their own attention does not read, and ours does, as in vLLM."""
_SLIDING = "sliding_attention"
_KNOWN = {_SLIDING, "full_attention"}


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
