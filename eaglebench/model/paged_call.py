"""The attention function that is registered with `transformers`, and how it learns what is running.

Not every family hands keyword arguments of its forward down to its attention, so each attention
module of a model holds the model's one `Running`, in which the forward that is running puts its
`PagedCall`. Nothing is global: two targets can run in turns, one can't run twice at a time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface

from eaglebench.errors import InvariantError
from eaglebench.kv.pool import LayerPools
from eaglebench.model.attention import AttentionForm, PagedAttention
from eaglebench.model.attention_layout import AttentionLayout
from eaglebench.model.target_config import LayerForm

ATTENTION_NAME = "eaglebench_paged"
_RUNNING = "eaglebench_running"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the model's own code asks of the attention of one layer.

    Attributes:
        layer: which decoder layer it is.
        scale: factor on the scores.
        softcap: scores are squashed to (-softcap, softcap) by tanh.
        sinks: [num_heads] logits of a key without a value, where the model passes them itself.
        window: the window it passes; None where it passes none.
        says_window: whether it passes a window at all.
    """

    layer: int
    scale: float
    softcap: float | None = None
    sinks: Tensor | None = None
    window: int | None = None
    says_window: bool = False


AttentionCall = Callable[[Tensor, Tensor, Tensor, Asked], Tensor]
"""Where the attention of a layer goes: query, key, value as in `PagedAttention`, and what is asked."""


class Running:
    """Where the attention of the forward that is running goes."""

    def __init__(self, model: nn.Module) -> None:
        self._call: AttentionCall | None = None
        for module in model.modules():
            if hasattr(module, "layer_idx"):
                setattr(module, _RUNNING, self)

    @contextmanager
    def forward(self, call: AttentionCall) -> Iterator[None]:
        """All attention within goes to `call`."""
        self._call = call
        try:
            yield
        finally:
            self._call = None

    def attend(self, query: Tensor, key: Tensor, value: Tensor, asked: Asked) -> Tensor:
        """Attention of one layer in the forward that is running."""
        if self._call is None:
            raise InvariantError("a layer attends outside a forward of its target")
        return self._call(query, key, value, asked)


@dataclass(frozen=True, slots=True)
class PagedCall:
    """What the registered attention function needs to know of one forward."""

    layout: AttentionLayout
    pools: LayerPools
    attention: PagedAttention
    layers: tuple[LayerForm, ...]

    def attend(self, query: Tensor, key: Tensor, value: Tensor, asked: Asked) -> Tensor:
        """Attention of one layer in its own pool.

        Sinks are those that the model passes itself; else the layer's own are taken. The window is
        always the layer's own, which an engine may have set; `survey.py` holds it against the
        model's.
        """
        place, own = self.pools.of_layer(asked.layer), self.layers[asked.layer]
        layout = self.layout
        if place.is_window and layout.window is not None:
            layout = layout.window
        form = AttentionForm(
            scale=asked.scale,
            window=own.window,
            softcap=asked.softcap,
            sinks=own.sinks if asked.sinks is None else asked.sinks,
        )
        return self.attention(query, key, value, place, layout, form)


def paged_attention_function(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,  # noqa: ARG001  # the signature is that of `transformers`
    scaling: float | None = None,
    **form: Any,
) -> tuple[Tensor, None]:
    """The function registered with `transformers`; q, k, v are [1, heads, num_tokens, head_dim]."""
    running = getattr(module, _RUNNING, None)
    if not isinstance(running, Running):
        raise InvariantError(f"{type(module).__name__} belongs to no target")
    asked = Asked(
        layer=int(module.layer_idx),  # type: ignore[arg-type]  # every attention module has one
        scale=query.shape[-1] ** -0.5 if scaling is None else scaling,
        softcap=form.get("softcap"),
        sinks=form.get("s_aux"),
        window=form.get("sliding_window"),
        says_window="sliding_window" in form,
    )
    attended = running.attend(
        query[0].transpose(0, 1), key[0].transpose(0, 1), value[0].transpose(0, 1), asked
    )
    return attended[None], None


AttentionInterface.register(ATTENTION_NAME, paged_attention_function)
