"""What a family's own code asks of attention, seen in a forward of one token.

The configs of families differ in what they name; what the layers really ask for can't. A family
whose layers don't all attend once each through the registered function, or attend in a way that our
pools can't hold, is refused here by what is missing, before anything is measured.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from eaglebench.foreign import foreign_code
from eaglebench.model.decoder import refusal, refuse
from eaglebench.model.paged_call import Asked, Running
from eaglebench.model.target_config import LayerForm


@dataclass(frozen=True, slots=True)
class Survey:
    """What every layer asks for.

    Attributes:
        num_kv_heads: of each layer.
        head_dim: width of keys and values.
        asked: by layer.
    """

    num_kv_heads: int
    head_dim: int
    asked: tuple[Asked, ...]

    @property
    def says_windows(self) -> bool:
        """Whether the family's attention is told about windows at all."""
        return any(each.says_window for each in self.asked)


class _Seen(NamedTuple):
    """One call of attention: what it asks, and how many heads of which width come."""

    asked: Asked
    key: tuple[int, int]
    value: tuple[int, int]


@torch.inference_mode()
def survey(model: PreTrainedModel, decoder: nn.Module, num_layers: int, running: Running) -> Survey:
    """Ask the layers of a model whose attention function is ours; a UsageError says what can't."""
    seen: list[_Seen] = []

    def note(query: Tensor, key: Tensor, value: Tensor, asked: Asked) -> Tensor:
        """In place of a `PagedCall`: attends to nothing, zeros of the right shape."""
        shapes = [(each.shape[1], each.shape[2]) for each in (key, value)]
        seen.append(_Seen(asked, *shapes))
        return query.new_zeros(query.shape[0], query.shape[1], value.shape[2])

    one: Any = torch.zeros((1, 1), dtype=torch.int64, device=model.device)
    with (
        foreign_code(lambda reason: refusal(model, f"its decoder fails on a token: {reason}")),
        running.forward(note),
    ):
        decoder(input_ids=one, position_ids=one, use_cache=False)
    for reason in _obstacles(seen, num_layers):
        refuse(model, reason)
    found = sorted(seen, key=lambda each: each.asked.layer)
    num_kv_heads, head_dim = found[0].key
    return Survey(num_kv_heads, head_dim, tuple(each.asked for each in found))


def _obstacles(seen: Sequence[_Seen], num_layers: int) -> Iterator[str]:
    """Why what was seen can't be computed in our pools."""
    layers = [each.asked.layer for each in seen]
    without = set(range(num_layers)) - set(layers)
    if without:
        several = f"{len(without)} of its {num_layers} layers don't"
        which = "none of its layers does" if len(without) == num_layers else several
        yield (
            "every layer has to attend through the attention interface of transformers, and "
            f"{which} (recurrent, convolutional and older attention layers)"
        )
    if len(layers) != num_layers or set(layers) != set(range(num_layers)):
        yield (
            f"a forward attends {len(layers)} times in {num_layers} layers, so that layers run "
            "more than once or share keys and values; our pools hold one K and V a layer"
        )
    for asked, key, value in seen:
        if key != value:
            yield (
                f"layer {asked.layer} has {key[0]} keys of width {key[1]} and {value[0]} values of "
                f"width {value[1]} (latent attention); our pools hold keys and values of one shape"
            )
    shapes = sorted({each.key for each in seen})
    if len(shapes) > 1:
        text = " and ".join(f"{heads} heads of {width}" for heads, width in shapes)
        yield f"its layers have KV of several shapes ({text}); our pools hold one"
    for asked, _, _ in seen:
        if not _is_real(asked.scale):
            yield f"layer {asked.layer} multiplies its scores by {asked.scale!r}"
        if asked.softcap is not None and not (_is_real(asked.softcap) and asked.softcap > 0):
            yield f"layer {asked.layer} caps its scores at {asked.softcap!r}; expected above 0"


def _is_real(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def check_windows(
    model: PreTrainedModel,
    found: Survey,
    layers: Sequence[LayerForm],
    *,
    context_length: int,
    is_extended: bool,
) -> None:
    """Hold the windows read from the config against those that the layers ask for.

    A window that is not narrower than `context_length` hides nothing. `is_extended` says that the
    config names windows on purpose that the family's own code does not know (`target_config.py`).

    Raises:
        UsageError: they differ.
    """
    if is_extended and not found.says_windows:
        return
    for asked, form in zip(found.asked, layers, strict=True):
        pair = (asked.window or context_length, form.window or context_length)
        if min(pair) < context_length and pair[0] != pair[1]:
            refuse(
                model,
                f"config.json gives layer {asked.layer} "
                f"{_window_name(form.window)} (sliding_window, layer_types), its code "
                f"{_window_name(asked.window)}",
            )


def _window_name(window: int | None) -> str:
    return "no window" if window is None else f"a window of {window}"
