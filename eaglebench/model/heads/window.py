"""How far back a head's layer sees, in the two spellings that configs have for it.

`layer_types` says it layer by layer. Without it `use_sliding_window` says it for all layers; where
that is silent too, the family decides: Mistral's layers slide when there is a `sliding_window`,
Qwen's don't, and Llama has no such word.
"""

from collections.abc import Sequence

from eaglebench.errors import CheckpointError

FULL, SLIDING = "full_attention", "sliding_attention"
_SAY = "say which with --draft-config sliding_window=N, or sliding_window=null for none"


def read_window(
    size: int | None,
    layer_types: Sequence[str] | None,
    *,
    slides: bool | None,
    full_layers: int | None,
    model_type: str | None,
) -> int | None:
    """Positions the layer sees, the current one included; None is all.

    Args:
        size: `sliding_window`.
        layer_types: of the head's layer, or a list copied from the target.
        slides: `use_sliding_window`.
        full_layers: `max_window_layers`: so many layers come before the first one that slides.
        model_type: the family.

    Raises:
        CheckpointError: it is said in two ways that don't agree, or can be read in two.
    """
    by_type = _by_layer_type(layer_types)
    if by_type is not None and slides is not None and by_type != slides and (size or by_type):
        raise CheckpointError(
            f"layer_types and use_sliding_window ({str(slides).lower()}) don't agree on whether the "
            "layer has a window",
            hint=_SAY,
        )
    if by_type is None:
        by_type = _by_flag(size, slides, full_layers, model_type)
    if by_type and size is None:
        word = f"layer_types {SLIDING}" if layer_types else "use_sliding_window"
        raise CheckpointError(f"{word} and no sliding_window", hint=_SAY)
    return size if by_type else None


def _by_layer_type(layer_types: Sequence[str] | None) -> bool | None:
    if not layer_types:
        return None
    unknown = sorted(set(layer_types) - {FULL, SLIDING})
    if unknown:
        raise CheckpointError(f"layer_types: layers of type {', '.join(unknown)} are unknown")
    if len(set(layer_types)) > 1:
        raise CheckpointError(
            f"layer_types names {len(layer_types)} layers of two types; which of them is the "
            "head's one layer is not said",
            hint=_SAY,
        )
    return layer_types[0] == SLIDING


def _by_flag(
    size: int | None, slides: bool | None, full_layers: int | None, model_type: str | None
) -> bool:
    if slides:
        if full_layers:
            raise CheckpointError(
                f"use_sliding_window is true and max_window_layers {full_layers}: whether the one "
                "layer comes before or after those is not said",
                hint=_SAY,
            )
        return True
    if slides is None and size is not None and model_type not in {"mistral", "qwen2", "qwen3"}:
        raise CheckpointError(
            f"sliding_window is {size}, and neither layer_types nor use_sliding_window say whether "
            "the layer has it",
            hint=_SAY,
        )
    return slides is None and size is not None and model_type == "mistral"
