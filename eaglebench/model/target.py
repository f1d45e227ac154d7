"""The target: a whole `transformers` causal LM whose attention reads and writes our paged pool.

Weights, configs, rotary embeddings, norms, MoE and soft caps stay those of `transformers`. One
attention function is registered; the plan and the pool travel to it as a keyword argument. No
cache object is passed and no mask is built: a registered name outside the mask registry gets none.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AutoModelForCausalLM, PreTrainedModel

from eaglebench.errors import UsageError
from eaglebench.kv.pool import HybridPool, KVPool, LayerPools
from eaglebench.model.attention import (
    AttentionForm,
    PagedAttention,
    make_attention,
    resolve_backend,
)
from eaglebench.model.attention_plan import AttentionPlan
from eaglebench.model.fused import fuse_layers
from eaglebench.model.hidden_states import HiddenStates
from eaglebench.model.layer_form import LayerForm, layer_forms, read_sinks
from eaglebench.model.linear import linear

ATTENTION_NAME = "eaglebench_paged"


@dataclass(frozen=True, slots=True)
class PagedCall:
    """What the registered attention function needs to know of one forward."""

    plan: AttentionPlan
    pools: LayerPools
    attention: PagedAttention
    layers: tuple[LayerForm, ...]

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        layer: int,
        scale: float,
        softcap: float | None = None,
        sinks: Tensor | None = None,
    ) -> Tensor:
        """Attention of one layer in its own pool; shapes as in `PagedAttention`.

        `sinks` are those that the model passes itself; else the layer's own are taken.
        """
        place, own = self.pools.of_layer(layer), self.layers[layer]
        plan = self.plan
        if place.is_window and plan.window is not None:
            plan = plan.window
        form = AttentionForm(
            scale=scale,
            window=own.window,
            softcap=softcap,
            sinks=own.sinks if sinks is None else sinks,
        )
        return self.attention(query, key, value, place.pool, place.layer, plan, form)


@dataclass(frozen=True, slots=True)
class TargetOutput:
    """Result of one target forward.

    Attributes:
        logits: [num_logit_rows, vocab], run dtype.
        aux: [num_tokens, num_aux * hidden] hidden states that were asked for, side by side.
        is_finite: [num_tokens] bool: whether the last hidden state of a token is; where a layer has
            written NaN or infinite K or V, it is not, since a token attends to itself.
    """

    logits: Tensor
    aux: Tensor | None
    is_finite: Tensor


def paged_attention_function(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,  # noqa: ARG001  # the signature is that of `transformers`
    scaling: float | None = None,
    paged: PagedCall | None = None,
    **form: Any,
) -> tuple[Tensor, None]:
    """The function registered with `transformers`; q, k, v are [1, heads, num_tokens, head_dim]."""
    if paged is None:
        raise UsageError("the paged attention function was called without a plan")
    attended = paged.attend(
        query[0].transpose(0, 1),
        key[0].transpose(0, 1),
        value[0].transpose(0, 1),
        layer=int(module.layer_idx),  # type: ignore[arg-type]  # every attention module has one
        scale=query.shape[-1] ** -0.5 if scaling is None else scaling,
        softcap=form.get("softcap"),
        sinks=form.get("s_aux"),
    )
    return attended[None], None


AttentionInterface.register(ATTENTION_NAME, paged_attention_function)


class Target:
    """A loaded target model."""

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        attention_backend: str = "auto",
        sinks: Tensor | None = None,
    ) -> None:
        model.eval().requires_grad_(requires_grad=False)
        model.set_attn_implementation(ATTENTION_NAME)
        self.model = model
        self.config = model.config.get_text_config()
        self.device: torch.device = model.device
        self.dtype: torch.dtype = model.dtype
        self.attention_backend = resolve_backend(attention_backend, self.device)
        self.attention = make_attention(self.attention_backend)
        self.stop_token_ids = _stop_token_ids(model)
        self.layers = layer_forms(self.config, sinks)
        fuse_layers(model)
        self._states = HiddenStates(self.decoder)

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        dtype: torch.dtype,
        device: torch.device,
        attention_backend: str = "auto",
        trust_remote_code: bool = False,
    ) -> "Target":
        """Load a folder or a Hub id.

        Raises:
            UsageError: `transformers` can't load it; the message carries its reason.
        """
        try:
            model = AutoModelForCausalLM.from_pretrained(
                str(path), dtype=dtype, trust_remote_code=trust_remote_code
            )
        except (OSError, ValueError, KeyError) as error:
            raise UsageError(
                f"can't load a target model from {path}: {error}",
                hint="give an asset name (eaglebench assets list), a folder or a Hub id",
            ) from error
        sinks = read_sinks(Path(path), model.config.get_text_config())
        if sinks is not None:
            sinks = sinks.to(device=device, dtype=dtype)
        return cls(model.to(device), attention_backend=attention_backend, sinks=sinks)

    def with_window(self, window: int | None) -> "Target":
        """The same model, its window layers seeing `window` positions; None is all of them.

        Raises:
            UsageError: it has no window layers.
        """
        if self.window is None:
            raise UsageError("this target has no sliding-window layers whose window could be set")
        changed = copy(self)
        changed.layers = tuple(
            form if form.window is None else replace(form, window=window) for form in self.layers
        )
        return changed

    # --- facts --------------------------------------------------------------------------------

    @property
    def decoder(self) -> Any:
        """The model without its language-model head."""
        return self.model.model

    @property
    def vocab_size(self) -> int:
        """Rows of the language-model head."""
        return int(self.config.vocab_size)

    @property
    def hidden_size(self) -> int:
        """Width of hidden states."""
        return int(self.config.hidden_size)

    @property
    def num_layers(self) -> int:
        """Decoder layers."""
        return int(self.config.num_hidden_layers)

    @property
    def normed_state_id(self) -> int:
        """The id under which `forward` gives the state behind the final norm."""
        return self._states.normed_id

    @property
    def context_length(self) -> int:
        """Most positions the model was made for."""
        return int(self.config.max_position_embeddings)

    @property
    def window(self) -> int | None:
        """Positions that window layers see, the current one included; None without such layers."""
        return max((form.window for form in self.layers if form.window is not None), default=None)

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        given = getattr(self.config, "head_dim", None)
        return int(given or self.hidden_size // self.config.num_attention_heads)

    @property
    def num_kv_heads(self) -> int:
        """KV heads of a layer."""
        return int(self.config.num_key_value_heads)

    @property
    def embedding(self) -> nn.Embedding:
        """The input embeddings."""
        embedding: nn.Embedding = self.model.get_input_embeddings()
        return embedding

    def make_pool(self, num_slots: int, fill: float = 0.0) -> KVPool:
        """One pool for all of this model's layers."""
        return self._pool(self.num_layers, num_slots, fill)

    def make_hybrid_pool(
        self, num_slots: int, num_window_slots: int, fill: float = 0.0
    ) -> HybridPool:
        """A pool for layers that see everything, and one for window layers."""
        is_window = tuple(form.window is not None for form in self.layers)
        return HybridPool(
            self._pool(is_window.count(False), num_slots, fill),
            self._pool(is_window.count(True), num_window_slots, fill),
            is_window,
        )

    def _pool(self, num_layers: int, num_slots: int, fill: float) -> KVPool:
        return KVPool(
            num_layers=num_layers,
            num_slots=num_slots,
            num_kv_heads=self.num_kv_heads,
            head_dim=self.head_dim,
            dtype=self.dtype,
            device=self.device,
            fill=fill,
        )

    # --- forward ------------------------------------------------------------------------------

    @torch.inference_mode()
    def forward(
        self,
        token_ids: Tensor,
        positions: Tensor,
        plan: AttentionPlan,
        pool: LayerPools,
        logit_rows: Tensor,
        aux_layer_ids: Sequence[int] = (),
        attention: PagedAttention | None = None,
    ) -> TargetOutput:
        """Compute all rows of a flattened batch.

        Args:
            token_ids: [num_tokens] int64.
            positions: [num_tokens] int64.
            plan: what is written and attended to.
            pool: where K and V live.
            logit_rows: [num_logit_rows] int64, rows of the batch whose logits are wanted.
            aux_layer_ids: id k asks for the hidden state that enters decoder layer k. With n
                layers, n is the state that enters the final norm, n + 1 the one that leaves it.
            attention: instead of the one that the target was loaded for.

        Raises:
            UsageError: a state was asked for that this model does not show.
        """
        self._states.want(aux_layer_ids)
        output = self.decoder(
            input_ids=token_ids[None],
            position_ids=positions[None],
            use_cache=False,
            paged=PagedCall(plan, pool, attention or self.attention, self.layers),
        )
        hidden: Tensor = output.last_hidden_state[0]
        aux = self._states.take(hidden)
        logits = self.lm_head_logits(hidden.index_select(0, logit_rows))
        return TargetOutput(logits, aux, torch.isfinite(hidden).all(dim=-1))

    def lm_head_logits(self, hidden: Tensor, token_ids: Tensor | None = None) -> Tensor:
        """[num_rows, vocab] logits of normed hidden states, soft cap included.

        Args:
            hidden: [num_rows, hidden].
            token_ids: [n] int64, columns that are wanted; None is all.
        """
        head = self.model.get_output_embeddings()
        weight, bias = head.weight, head.bias
        if token_ids is not None:
            weight = weight.index_select(0, token_ids)
            bias = None if bias is None else bias.index_select(0, token_ids)
        logits = linear(hidden, weight, bias)
        softcap = getattr(self.config, "final_logit_softcapping", None)
        return logits if softcap is None else torch.tanh(logits / softcap) * softcap


def _stop_token_ids(model: PreTrainedModel) -> tuple[int, ...]:
    """End tokens of the generation config and the config, one or several."""
    found: set[int] = set()
    for source in (getattr(model, "generation_config", None), model.config):
        ids = getattr(source, "eos_token_id", None)
        if ids is not None:
            found.update([ids] if isinstance(ids, int) else ids)
    return tuple(sorted(found))
