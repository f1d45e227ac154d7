"""A trainable EAGLE-3 head and its training-time test.

Between steps the head is fed its own hidden states instead of the target's features, as it will be
when it proposes: step k sees the step-0 keys of all earlier positions and one key of its own from
each step since (EAGLE-3, arXiv:2503.01840).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TrainableHead(nn.Module):
    """One decoder layer over [token ; feature]; names as in the published checkpoints."""

    def __init__(
        self, *, hidden: int, mlp: int, heads: int, kv_heads: int, num_aux: int, vocab: int
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.width = heads, kv_heads, hidden // heads
        self.fc = nn.Linear(num_aux * hidden, hidden, bias=False)
        self.input_layernorm = nn.RMSNorm(hidden, eps=1e-5)
        self.hidden_norm = nn.RMSNorm(hidden, eps=1e-5)
        self.post_attention_layernorm = nn.RMSNorm(hidden, eps=1e-5)
        self.norm = nn.RMSNorm(hidden, eps=1e-5)
        self.q_proj = nn.Linear(2 * hidden, heads * self.width, bias=False)
        self.k_proj = nn.Linear(2 * hidden, kv_heads * self.width, bias=False)
        self.v_proj = nn.Linear(2 * hidden, kv_heads * self.width, bias=False)
        self.o_proj = nn.Linear(heads * self.width, hidden, bias=False)
        self.gate_proj = nn.Linear(hidden, mlp, bias=False)
        self.up_proj = nn.Linear(hidden, mlp, bias=False)
        self.down_proj = nn.Linear(mlp, hidden, bias=False)
        self.lm_head = nn.Linear(hidden, vocab, bias=False)

    def step(
        self,
        embedded: Tensor,
        features: Tensor,
        cos: Tensor,
        sin: Tensor,
        past: list[tuple[Tensor, Tensor]],
    ) -> Tensor:
        """One level for all positions; appends its K and V to `past`. Shapes [B, T, hidden]."""
        batch, length, _ = features.shape
        x = torch.cat([self.input_layernorm(embedded), self.hidden_norm(features)], dim=-1)
        q = self._heads(self.q_proj(x), self.heads, cos, sin)
        k = self._heads(self.k_proj(x), self.kv_heads, cos, sin)
        v = self.v_proj(x).view(batch, length, self.kv_heads, self.width).transpose(1, 2)
        groups = self.heads // self.kv_heads
        past.append((k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)))
        attended = self._attend(q, past)
        h = features + self.o_proj(attended.transpose(1, 2).reshape(batch, length, -1))
        y = self.post_attention_layernorm(h)
        out: Tensor = h + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))
        return out

    def _heads(self, x: Tensor, heads: int, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = x.shape
        x = x.view(batch, length, heads, self.width).transpose(1, 2)
        half = self.width // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def _attend(self, q: Tensor, past: list[tuple[Tensor, Tensor]]) -> Tensor:
        """Row i sees step-0 keys 0 .. i and its own key of every later step."""
        length = q.shape[2]
        first_k, first_v = past[0]
        scale = self.width**-0.5
        scores = q @ first_k.transpose(-1, -2) * scale
        rows = torch.arange(length, device=q.device)
        scores = scores.masked_fill(rows[None, :] > rows[:, None], float("-inf"))
        own = [(q * k).sum(-1, keepdim=True) * scale for k, _ in past[1:]]
        weights = torch.softmax(torch.cat([scores, *own], -1), -1)
        out = weights[..., :length] @ first_v
        for level, (_, v) in enumerate(past[1:]):
            out = out + weights[..., length + level, None] * v
        return out
