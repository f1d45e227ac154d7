"""How far back a head's layer sees, in the two spellings that configs have for it.

`layer_types` says it layer by layer. Without it `use_sliding_window` says it for all layers; where
that is silent too, the family decides: Mistral's layers slide when there is a `sliding_window`,
Qwen's don't, and Llama has no such word.
"""

from typing import TYPE_CHECKING

from eaglebench.errors import CheckpointError

if TYPE_CHECKING:
    from eaglebench.model.heads.config import HeadConfig

FULL, SLIDING = "full_attention", "sliding_attention"
_SAY = "say which with --draft-config sliding_window=N, or sliding_window=null for none"


def read_window(config: "HeadConfig") -> int | None:
    """Positions the layer sees, the current one included; None is all.

    Raises:
        CheckpointError: it is said in two ways that don't agree, or can be read in two.
    """
    size, flag = config.sliding_window, config.use_sliding_window
    slides = _by_layer_type(config.layer_types or [])
    if slides is not None and flag is not None and slides != flag and (size or slides):
        raise CheckpointError(
            f"layer_types and use_sliding_window ({str(flag).lower()}) don't agree on whether the "
            "layer has a window",
            hint=_SAY,
        )
    if slides is None:
        slides = _by_flag(config)
    if slides and size is None:
        word = f"layer_types {SLIDING}" if config.layer_types else "use_sliding_window"
        raise CheckpointError(f"{word} and no sliding_window", hint=_SAY)
    return size if slides else None


def _by_layer_type(layer_types: list[str]) -> bool | None:
    """By the type of the head's layer, or by a list that was copied from the target."""
    found = set(layer_types)
    unknown = sorted(found - {FULL, SLIDING})
    if unknown:
        raise CheckpointError(f"layer_types: layers of type {', '.join(unknown)} are unknown")
    if len(found) > 1:
        raise CheckpointError(
            f"layer_types names {len(layer_types)} layers of two types; which of them is the "
            "head's one layer is not said",
            hint=_SAY,
        )
    return SLIDING in found if found else None


def _by_flag(config: "HeadConfig") -> bool:
    size, slides = config.sliding_window, config.use_sliding_window
    if slides and config.max_window_layers:  # so many layers come before the first one that slides
        raise CheckpointError(
            f"use_sliding_window is true and max_window_layers {config.max_window_layers}: whether the one "
            "layer comes before or after those is not said",
            hint=_SAY,
        )
    if slides is not None or size is None:
        return bool(slides)
    if config.model_type not in {"mistral", "qwen2", "qwen3"}:
        raise CheckpointError(
            f"sliding_window is {size}, and neither layer_types nor use_sliding_window say whether "
            "the layer has it",
            hint=_SAY,
        )
    return config.model_type == "mistral"
