"""The head of EAGLE-1 and EAGLE-2: one decoder layer that foretells the target's next state.

    f_i = the target's hidden state behind its final norm, what its lm_head sees
    x = fc([embed(t_{i+1}) ; f_i])
    h = x + attention(x)                                   no input norm
    h = h + mlp(post_attention_layernorm(h))               the next level's f, not normed
    logits = the target's lm_head(h)

fc has a bias in some files and none in others. Embeddings and lm_head are the target's unless the
file brings its own. Source: EAGLE (arXiv:2401.15077) and its published code (`cnets1.py`,
SafeAILab/EAGLE).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from eaglebench.kv.pool import KVPool
from eaglebench.model.attention_layout import AttentionLayout
from eaglebench.model.heads.format import Algorithm
from eaglebench.model.heads.head import LoadReport
from eaglebench.model.heads.layer import HeadLayer, on_target
from eaglebench.model.heads.places import EMBEDDING, LM_HEAD
from eaglebench.model.heads.published import PublishedHead
from eaglebench.model.linear import linear
from eaglebench.model.target import Target


class Eagle1Head:
    """A loaded EAGLE-1 or EAGLE-2 head; implements `DraftHead`."""

    algorithm = Algorithm.EAGLE

    def __init__(self, published: PublishedHead, target: Target, report: LoadReport) -> None:
        weights = on_target(published.placed.tensors, target)
        self.config = published.config
        self.report = report
        self.target = target
        self.attention_backend = target.attention_backend
        self.aux_layer_ids = report.aux_layer_ids
        self.max_positions = published.config.max_position_embeddings
        self.layer = HeadLayer(published.config, weights, target)
        self._fc, self._fc_bias = weights["fc.weight"], weights.get("fc.bias")
        self._embedding = weights.get(EMBEDDING, target.embedding.weight)
        self._lm_head = weights.get(LM_HEAD)
        self.draft_vocab_size = target.vocab_size if self._lm_head is None else len(self._lm_head)

    def make_pool(self, num_slots: int, fill: float = 0.0) -> KVPool:
        """A pool for the head's one layer, over the same slot ids as the target's."""
        return self.layer.make_pool(num_slots, fill)

    @torch.inference_mode()
    def fuse(self, aux: Tensor) -> Tensor:
        """The target's state as it is."""
        return aux

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
        inputs = linear(torch.cat([embedded, features], dim=-1), self._fc, self._fc_bias)
        return self.layer.forward(inputs, inputs, positions, layout, pool)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """[num_rows, vocab] logits of hidden states that `forward` returned."""
        if self._lm_head is None:
            return self.target.lm_head_logits(hidden)
        return linear(hidden, self._lm_head)

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """The ids themselves: the vocabulary is the target's."""
        return draft_ids
