"""The EAGLE-3 head: one decoder layer over target features and next tokens.

    g = fc([a_low ; a_mid ; a_high])                       features of the target, once a slot
    x = [input_layernorm(embed(t_{i+1})) ; hidden_norm(g)]
    h = g + attention(x)
    h = h + mlp(post_attention_layernorm(h))               the next level's g, not normed
    logits = lm_head(norm(h))                              over the draft's own vocabulary; the
                                                           target's where the file has none

Variants that configs ask for:

    norm_before_fc        g = fc(input_norm([a_low ; a_mid ; a_high]))
    fc_norm               g = fc([norm_0(a_low) ; norm_1(a_mid) ; norm_2(a_high)])
    norm_before_residual  h = hidden_norm(g) + attention(x)
    norm_output           norm(h) is the next level's g; by project, see `format.feeds_normed`
    use_aux_hidden_state  false: g is the target's state behind its final norm, without fc

Source: EAGLE-3 (arXiv:2503.01840) and its published code (`cnets.py`, SafeAILab/EAGLE); the norms
of EAGLE 3.1 (arXiv:2605.09992).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from eaglebench.kv.pool import KVPool
from eaglebench.model.attention_layout import AttentionLayout
from eaglebench.model.heads.aux_layers import count_aux
from eaglebench.model.heads.fit import facts_of, id_table
from eaglebench.model.heads.format import Algorithm
from eaglebench.model.heads.head import LoadReport
from eaglebench.model.heads.layer import HeadLayer, on_target, rms_norm
from eaglebench.model.heads.places import (
    EMBEDDING,
    FINAL_NORM,
    JOINED_NORM,
    LAYER,
    LM_HEAD,
    state_norm,
)
from eaglebench.model.heads.published import PublishedHead
from eaglebench.model.linear import linear
from eaglebench.model.target import Target


class Eagle3Head:
    """A loaded EAGLE-3 head; implements `DraftHead`."""

    algorithm = Algorithm.EAGLE3

    def __init__(self, published: PublishedHead, target: Target, report: LoadReport) -> None:
        weights = on_target(published.placed.tensors, target)
        config = published.config
        self.config = config
        self.report = report
        self.target = target
        self.attention_backend = target.attention_backend
        self.aux_layer_ids = report.aux_layer_ids
        self.max_positions = config.max_position_embeddings
        self.layer = HeadLayer(config, weights, target)
        table, warning = id_table(published, facts_of(target))
        if warning:
            report.warnings.append(warning)
        self.draft_vocab_size = len(table)
        self._target_ids = table.to(target.device)
        self._eps = config.rms_norm_eps
        self._feeds_normed = published.feeds_normed
        self._norms_residual = bool(config.norm_before_residual)
        self._embedding = weights.get(EMBEDDING, target.embedding.weight)
        self._joined_norm = weights.get(JOINED_NORM)
        num_norms = count_aux(config) if config.norms_each else 0
        self._state_norms = [weights[state_norm(index)] for index in range(num_norms)]
        self._fc, self._fc_bias = weights.get("fc.weight"), weights.get("fc.bias")
        self._token_norm = weights[f"{LAYER}input_layernorm.weight"]
        self._feature_norm = weights[f"{LAYER}hidden_norm.weight"]
        self._norm = weights[FINAL_NORM]
        tied = self._embedding if config.tie_word_embeddings else None
        self._lm_head = weights.get(LM_HEAD, tied)

    def make_pool(self, num_slots: int, fill: float = 0.0) -> KVPool:
        """A pool for the head's one layer, over the same slot ids as the target's."""
        return self.layer.make_pool(num_slots, fill)

    @torch.inference_mode()
    def fuse(self, aux: Tensor) -> Tensor:
        """Features [num_tokens, hidden] from the target's [num_tokens, num_aux * hidden]."""
        if self._joined_norm is not None:
            aux = rms_norm(aux, self._joined_norm, self._eps)
        if self._state_norms:
            parts = aux.chunk(len(self._state_norms), dim=-1)
            pairs = zip(parts, self._state_norms, strict=True)
            aux = torch.cat([rms_norm(part, norm, self._eps) for part, norm in pairs], dim=-1)
        return aux if self._fc is None else linear(aux, self._fc, self._fc_bias)

    @torch.inference_mode()
    def forward(
        self,
        token_ids: Tensor,
        features: Tensor,
        positions: Tensor,
        layout: AttentionLayout,
        pool: KVPool,
    ) -> Tensor:
        """Hidden states [num_tokens, hidden]; see `DraftHead.forward`."""
        embedded = F.embedding(token_ids, self._embedding)
        normed = rms_norm(features, self._feature_norm, self._eps)
        inputs = torch.cat([rms_norm(embedded, self._token_norm, self._eps), normed], dim=-1)
        residual = normed if self._norms_residual else features
        hidden = self.layer.forward(inputs, residual, positions, layout, pool)
        return rms_norm(hidden, self._norm, self._eps) if self._feeds_normed else hidden

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """[num_rows, draft_vocab] logits of hidden states that `forward` returned."""
        normed = hidden if self._feeds_normed else rms_norm(hidden, self._norm, self._eps)
        if self._lm_head is None:
            return self.target.lm_head_logits(normed)
        return linear(normed, self._lm_head)

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """Target ids [n] of draft ids [n]."""
        return self._target_ids.index_select(0, draft_ids)
