"""Training-time test: a trainable head, and its loss when fed its own hidden states level after level.

    level   slot i is fed               stands at   is asked for
    0       token i + 1, feature i      i           the token behind i + 1
    1       token i + 2, hidden 0 of i  i + 1       the token behind i + 2
    k       token i+1+k, hidden k-1     i + k       the token behind i + 1 + k

Level k sees the level-0 keys of all earlier positions and one key of its own from each level since.
Tokens are always the conversation's own, so "right at level k" means right after k right proposals, and
the run of right levels at a slot is what a greedy verify step from there would accept.

Source: EAGLE-3 (arXiv:2503.01840); the loss is SpecForge's, cross-entropy against the target's
distribution with a weight that decays by level, with the gradient made in the forward pass:

    loss = mean over rows of  logsumexp(x) - sum(w * x)        grad = (softmax(x) - w) / rows

One autograd function, because the plain form walks over [rows, vocab] a dozen times and keeps most of
it for the backward pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eaglebench.model.fused import rotate
from eaglebench.model.heads.config import HeadConfig
from eaglebench.model.heads.layer import rms_norm
from eaglebench.training.conversation import Conversation
from eaglebench.training.recipe import Acceptance
from eaglebench.training.teacher import Lesson, Shelf

PastLevel = tuple[Tensor, Tensor]
_EXAM_GROUP = 8
"""Conversations computed at a time."""


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


class _SoftCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, wanted: Tensor) -> Tensor:
        probabilities = torch.softmax(logits, dim=-1)
        aligned = torch.linalg.vecdot(wanted, logits).float()
        loss: Tensor = (torch.logsumexp(logits.float(), dim=-1) - aligned).mean()
        ctx.save_for_backward(probabilities.sub_(wanted).div_(len(logits)))
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * grads[0].to(gradient.dtype), None


def soft_cross_entropy(logits: Tensor, wanted: Tensor) -> Tensor:
    """Mean cross-entropy, a scalar, of logits and wanted distributions, [rows, vocab] of one dtype."""
    apply: Any = _SoftCrossEntropy.apply
    loss: Tensor = apply(logits, wanted)
    return loss


@dataclass(frozen=True, slots=True)
class LevelScore:
    """One level over a lesson.

    Attributes:
        loss: scalar.
        is_asked: [batch, rows] bool, slots that were asked.
        is_right: [batch, rows] bool, whether the proposal is the target's choice.
    """

    loss: Tensor
    is_asked: Tensor
    is_right: Tensor


class TrainingTimeTest:
    """Runs a head over lessons; products are computed in `dtype`, the head's own is float32.

    `rotary`, a module of `transformers`, gives cos and sin of positions; `draft_ids` [draft_vocab]
    int64 are the target ids of all tokens that can be proposed.
    """

    def __init__(
        self, rotary: nn.Module, draft_ids: Tensor, num_levels: int, dtype: torch.dtype
    ) -> None:
        self._rotary, self._draft_ids = rotary, draft_ids
        self.num_levels = num_levels
        self._dtype = dtype

    def run(self, head: TrainableHead, lesson: Lesson) -> list[LevelScore]:
        """Scores by level."""
        is_half = self._dtype in {torch.bfloat16, torch.float16}
        with torch.autocast(lesson.ids.device.type, dtype=self._dtype, enabled=is_half):
            return self._run(head, lesson)

    def _run(self, head: TrainableHead, lesson: Lesson) -> list[LevelScore]:
        num_rows = lesson.ids.shape[1] - self.num_levels
        features = head.fc(lesson.aux[:, :num_rows])
        past: list[PastLevel] = []
        scores = []
        for level in range(self.num_levels):
            fed = slice(level + 1, level + 1 + num_rows)
            positions = torch.arange(level, level + num_rows, device=lesson.ids.device)
            cos, sin = self._rotary(features, positions[None])
            features = head.step(
                lesson.embedded[:, fed], features, cos[:, None], sin[:, None], past
            )
            scores.append(self._score(head, features, lesson, lesson.decision[:, fed]))
        return scores

    def _score(
        self, head: TrainableHead, hidden: Tensor, lesson: Lesson, decision: Tensor
    ) -> LevelScore:
        is_asked = decision >= 0
        rows = decision[is_asked]
        logits = head.lm_head(head.norm(hidden[is_asked]))
        wanted = lesson.wanted.index_select(0, rows)
        best = logits.detach().max(-1).indices  # several times faster than argmax on a CPU
        proposed = self._draft_ids.index_select(0, best)
        is_right = torch.zeros_like(is_asked)
        is_right[is_asked] = proposed == lesson.argmax.index_select(0, rows)
        return LevelScore(soft_cross_entropy(logits, wanted.to(logits.dtype)), is_asked, is_right)


def decayed(scores: list[LevelScore], decay: float) -> Tensor:
    """Sum of the levels' losses, level k weighted with decay to the power of k."""
    losses = [decay**level * score.loss for level, score in enumerate(scores)]
    return torch.stack(losses).sum()


@torch.no_grad()
def measure_acceptance(
    head: TrainableHead,
    exam: TrainingTimeTest,
    shelf: Shelf,
    conversations: Sequence[Conversation],
) -> Acceptance:
    """Held-out acceptance: what a verify step begun at every position would accept."""
    groups = [conversations[i : i + _EXAM_GROUP] for i in range(0, len(conversations), _EXAM_GROUP)]
    counts = [count_accepted(exam.run(head, shelf.lesson(group))) for group in groups]
    return Acceptance(
        positions=sum(each.positions for each in counts),
        by_level=tuple(map(sum, zip(*(each.by_level for each in counts), strict=True))),
    )


def count_accepted(scores: Sequence[LevelScore]) -> Acceptance:
    """Slots that were asked at every level, and those with all levels up to each right."""
    asked = torch.stack([score.is_asked for score in scores]).all(dim=0)
    right = torch.stack([score.is_right & asked for score in scores]).int().cumprod(dim=0)
    return Acceptance(
        positions=int(asked.sum()), by_level=tuple(int(level.sum()) for level in right)
    )
