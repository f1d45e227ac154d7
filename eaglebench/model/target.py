"""The target: a whole `transformers` causal LM whose attention reads and writes our paged pool.

Weights, configs, rotary embeddings, norms, MoE and logits stay those of `transformers`. One
attention function is registered (`paged_call.py`). No cache object is passed and no mask is built:
a registered name outside the mask registry gets none.

Families are not listed: a model has to show that it can be computed here. `decoder.py` finds its
parts, `survey.py` asks its layers what they want, `proof.py` holds the result against the model's
own forward, and whatever does not fit is refused by name.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from eaglebench.errors import UsageError
from eaglebench.kv.pool import HybridPool, KVPool, LayerPools
from eaglebench.model.attention import PagedAttention, make_attention, resolve_backend
from eaglebench.model.attention_layout import AttentionLayout
from eaglebench.model.decoder import HiddenStates, find_decoder, make_ready
from eaglebench.model.fused import fuse_layers
from eaglebench.model.logit_head import LogitHead
from eaglebench.model.paged_call import ATTENTION_NAME, PagedCall, Running
from eaglebench.model.proof import own_logits, prove
from eaglebench.model.survey import check_windows, survey
from eaglebench.model.target_config import (
    LayerForm,
    config_warnings,
    context_length,
    is_extended,
    layer_forms,
    read_sinks,
    stop_token_ids,
)
from eaglebench.model.target_loading import load_model


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


class Target:
    """A loaded target model."""

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        attention_backend: str = "auto",
        sinks: Tensor | None = None,
    ) -> None:
        make_ready(model)
        self.model = model
        self.config = model.config.get_text_config()
        self.decoder = find_decoder(model)
        model.set_attn_implementation(ATTENTION_NAME)
        self.device: torch.device = model.device
        self.dtype: torch.dtype = model.dtype
        self.attention_backend = resolve_backend(attention_backend, self.device)
        self.attention = make_attention(self.attention_backend)
        self.stop_token_ids = stop_token_ids(model)
        self.layers = layer_forms(self.config, sinks)
        self.warnings = config_warnings(self.config, self.stop_token_ids)
        self.is_extended = is_extended(self.config, sinks)
        self._running = Running(model)
        found = survey(model, self.decoder, self.num_layers, self._running)
        check_windows(
            model,
            found,
            self.layers,
            context_length=self.context_length,
            is_extended=self.is_extended,
        )
        self.num_kv_heads, self.head_dim = found.num_kv_heads, found.head_dim
        self._says_windows = found.says_windows
        if self.window is not None and sinks is None and not found.says_windows:
            name = type(model).__name__
            self.warnings += (f"layer_types: windows are applied that {name} itself passes over",)
        self._head = LogitHead(model, self.decoder)
        fuse_layers(model, self.decoder, self._running)
        self._states = HiddenStates(self.decoder, self.num_layers)

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
        """Load a folder or a Hub id, account for every tensor, and prove the model ours.

        Raises:
            UsageError: it can't be loaded or is not whole, or its family can't be computed here.
        """
        model = load_model(path, dtype=dtype, device=device, trust_remote_code=trust_remote_code)
        sinks = read_sinks(Path(path), model.config.get_text_config())
        if sinks is not None:
            sinks = sinks.to(device=device, dtype=dtype)
        return cls.proved(model, attention_backend=attention_backend, sinks=sinks)

    @classmethod
    def proved(
        cls,
        model: PreTrainedModel,
        *,
        attention_backend: str = "auto",
        sinks: Tensor | None = None,
    ) -> "Target":
        """A target whose logits were held against the model's own forward (`proof.py`).

        Raises:
            UsageError: they differ, or the family can't be computed here.
        """
        make_ready(model)
        find_decoder(model)
        config = model.config.get_text_config()
        layer_forms(config, sinks)  # what it refuses is told before its own forward fails over it
        own = own_logits(model, context_length(config))
        target = cls(model, attention_backend=attention_backend, sinks=sinks)
        prove(target._as_the_family_sees_it(), own)
        return target

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
        """Most positions: those the model was made for, of one rotary table (`target_config.py`)."""
        return context_length(self.config)

    @property
    def window(self) -> int | None:
        """Positions that window layers see, the current one included; None without such layers."""
        return max((form.window for form in self.layers if form.window is not None), default=None)

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
        layout: AttentionLayout,
        pool: LayerPools,
        logit_rows: Tensor,
        aux_layer_ids: Sequence[int] = (),
        attention: PagedAttention | None = None,
    ) -> TargetOutput:
        """Compute all rows of a flattened batch.

        Args:
            token_ids: [num_tokens] int64.
            positions: [num_tokens] int64.
            layout: what is written and attended to.
            pool: where K and V live.
            logit_rows: [num_logit_rows] int64, rows of the batch whose logits are wanted.
            aux_layer_ids: id k asks for the hidden state that enters decoder layer k. With n
                layers, n is the state that enters the final norm, n + 1 the one that leaves it.
            attention: instead of the one that the target was loaded for.

        Raises:
            UsageError: a state was asked for that this model does not show.
        """
        self._states.want(aux_layer_ids)
        call = PagedCall(layout, pool, attention or self.attention, self.layers)
        with self._running.forward(call.attend):
            output = self.decoder(
                input_ids=token_ids[None], position_ids=positions[None], use_cache=False
            )
        hidden: Tensor = output.last_hidden_state[0]
        aux = self._states.take(hidden)
        logits = self.lm_head_logits(hidden.index_select(0, logit_rows))
        return TargetOutput(logits, aux, torch.isfinite(hidden).all(dim=-1))

    def lm_head_logits(self, hidden: Tensor, token_ids: Tensor | None = None) -> Tensor:
        """[num_rows, vocab] logits of normed [num_rows, hidden], with all that the family does to them.

        `token_ids` [n] int64 are the columns that are wanted; None is all.
        """
        return self._head(hidden, token_ids)

    def _as_the_family_sees_it(self) -> "Target":
        """Without windows and sinks that its own code does not know (`target_config.py`)."""
        if not self.is_extended:
            return self
        plain = copy(self)
        plain.layers = tuple(
            LayerForm(form.window if self._says_windows else None) for form in self.layers
        )
        return plain
