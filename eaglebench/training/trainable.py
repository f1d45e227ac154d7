"""A trainable EAGLE-3 head, one decoder layer over [token ; feature].

Between levels the head is fed its own hidden states instead of the target's features, as it will be
when it proposes: level k sees the level-0 keys of all earlier positions and one key of its own from
each level since (training-time test of EAGLE-3, arXiv:2503.01840).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eaglebench.model.fused import rotate
from eaglebench.model.heads.config import HeadConfig
from eaglebench.model.heads.layer import rms_norm

PastLevel = tuple[Tensor, Tensor]


class Norm(nn.Module):
    """Root-mean-square norm in the dtype of what is normed."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self._eps = eps

    def forward(self, rows: Tensor) -> Tensor:
        """Normed over the last dimension."""
        return rms_norm(rows, self.weight.to(rows.dtype), self._eps)


class TrainableHead(nn.Module):
    """Parameters are called as in the published checkpoints, less the layer's prefixes."""

    def __init__(self, config: HeadConfig, num_aux: int, num_proposed: int) -> None:
        """A head over features of `num_aux` states, for so many tokens that can be proposed."""
        super().__init__()
        self.config = config
        hidden, eps = config.hidden_size, config.rms_norm_eps
        queries = config.num_attention_heads * config.head_width
        kept = config.num_kv_heads * config.head_width
        self.fc = nn.Linear(num_aux * hidden, hidden, bias=False)
        self.input_layernorm = Norm(hidden, eps)
        self.hidden_norm = Norm(hidden, eps)
        self.post_attention_layernorm = Norm(hidden, eps)
        self.norm = Norm(hidden, eps)
        self.q_proj = nn.Linear(2 * hidden, queries, bias=False)
        self.k_proj = nn.Linear(2 * hidden, kept, bias=False)
        self.v_proj = nn.Linear(2 * hidden, kept, bias=False)
        self.o_proj = nn.Linear(queries, hidden, bias=False)
        self.gate_proj = nn.Linear(hidden, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, hidden, bias=False)
        self.lm_head = nn.Linear(hidden, num_proposed, bias=False)

    def step(
        self,
        embedded: Tensor,
        features: Tensor,
        cos: Tensor,
        sin: Tensor,
        past: list[PastLevel],
    ) -> Tensor:
        """One level for all positions; appends its K and V to `past`.

        Args:
            embedded: [batch, length, hidden], of the token after each position.
            features: [batch, length, hidden], fused or the level before.
            cos: [1, 1, length, head_dim] of this level's positions.
            sin: likewise.
            past: K and V of the levels before, each [batch, kv_heads, length, head_dim].

        Returns:
            [batch, length, hidden], the next level's features, not normed.
        """
        x = torch.cat([self.input_layernorm(embedded), self.hidden_norm(features)], dim=-1)
        query = rotate(self._heads(self.q_proj(x)), cos, sin)
        key = rotate(self._heads(self.k_proj(x)), cos, sin)
        past.append((key, self._heads(self.v_proj(x))))
        attended = attend_levels(query, past).transpose(1, 2).flatten(2)
        hidden = features + self.o_proj(attended)
        y = self.post_attention_layernorm(hidden)
        out: Tensor = hidden + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))
        return out

    def _heads(self, rows: Tensor) -> Tensor:
        """[batch, heads, length, head_dim] of [batch, length, heads * head_dim]."""
        batch, length, _ = rows.shape
        return rows.view(batch, length, -1, self.config.head_width).transpose(1, 2)


def attend_levels(query: Tensor, past: list[PastLevel]) -> Tensor:
    """Position i sees level-0 keys 0 .. i and its own key of every later level.

    Args:
        query: [batch, heads, length, head_dim].
        past: K and V of each level so far, [batch, kv_heads, length, head_dim].

    Returns:
        [batch, heads, length, head_dim].
    """
    batch, heads, length, width = query.shape
    first_key, first_value = past[0]
    kv_heads = first_key.shape[1]
    if len(past) == 1:
        return F.scaled_dot_product_attention(
            query, first_key, first_value, is_causal=True, enable_gqa=kv_heads < heads
        )
    grouped = query.view(batch, kv_heads, heads // kv_heads, length, width) * width**-0.5
    scores = grouped @ first_key[:, :, None].transpose(-1, -2)
    future = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1)
    scores = scores.masked_fill(future, float("-inf"))
    own = [(grouped * key[:, :, None]).sum(-1, keepdim=True) for key, _ in past[1:]]
    weights = torch.softmax(torch.cat([scores, *own], dim=-1).float(), dim=-1).to(query.dtype)
    out = weights[..., :length] @ first_value[:, :, None]
    for level, (_, value) in enumerate(past[1:]):
        out = out + weights[..., length + level, None] * value[:, :, None]
    return out.view(batch, heads, length, width)
