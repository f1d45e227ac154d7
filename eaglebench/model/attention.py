"""Attention over paged KV: write this step's K and V, then attend through each request's slots.

The plan says which tokens belong together and where their context lies (`attention_plan.py`); it is
passed in, nothing is global.

Two implementations of one seam: `LoopAttention` takes the requests one after another (CPU),
`PaddedAttention` all at once in a padded batch without a host sync (CUDA).
"""

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from eaglebench.errors import UsageError
from eaglebench.kv.pool import KVPool
from eaglebench.model.attention_plan import AttentionPlan, PaddedIndex, RowSpan

BACKENDS = ("loop", "padded")


def resolve_backend(name: str, device: torch.device) -> str:
    """`auto` is the loop on a CPU and the padded batch elsewhere.

    Raises:
        UsageError: no such implementation.
    """
    if name == "auto":
        return "loop" if device.type == "cpu" else "padded"
    if name not in BACKENDS:
        raise UsageError(
            f"unknown attention backend {name!r}; expected auto, {' or '.join(BACKENDS)}"
        )
    return name


@dataclass(frozen=True, slots=True)
class AttentionForm:
    """What one layer's attention looks like.

    Attributes:
        scale: factor on the scores.
        window: last positions seen, the current one included; None sees all.
        softcap: scores are squashed to (-softcap, softcap) by tanh.
        sinks: [num_heads] logits of a key without a value.
    """

    scale: float
    window: int | None = None
    softcap: float | None = None
    sinks: Tensor | None = None


class PagedAttention(Protocol):
    """The seam."""

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        pool: KVPool,
        layer: int,
        plan: AttentionPlan,
        form: AttentionForm,
    ) -> Tensor:
        """Write K and V, attend, return [num_tokens, num_heads, head_dim].

        Args:
            query: [num_tokens, num_heads, head_dim].
            key: [num_tokens, num_kv_heads, head_dim].
            value: [num_tokens, num_kv_heads, head_dim].
            pool: where K and V live.
            layer: layer of the pool.
            plan: which tokens belong together.
            form: what the layer's attention looks like.
        """
        ...


class LoopAttention:
    """One request after another; query heads that share a KV head are folded into the queries."""

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        pool: KVPool,
        layer: int,
        plan: AttentionPlan,
        form: AttentionForm,
    ) -> Tensor:
        """See `PagedAttention`."""
        pool.write(layer, plan.slot_mapping, key, value)
        out = torch.empty_like(query)
        for row in plan.rows:
            if row.run_start is None:
                keys, values = pool.gather(layer, row.slots)
            else:
                keys, values = pool.slice(layer, row.run_start, row.run_start + row.context_len)
            _attend(query[row.start : row.end], keys, values, row, form, out[row.start : row.end])
        return out


def _attend(
    query: Tensor, keys: Tensor, values: Tensor, row: RowSpan, form: AttentionForm, out: Tensor
) -> None:
    """Attention of one request into `out` [num_queries, num_heads, head_dim]."""
    num_queries, num_heads, head_dim = query.shape
    num_kv_heads = keys.shape[0]
    groups = num_heads // num_kv_heads
    folded = (
        query.view(num_queries, num_kv_heads, groups, head_dim)
        .permute(1, 2, 0, 3)
        .reshape(num_kv_heads, groups * num_queries, head_dim)
    )
    bias = None if row.sees_everything(form.window) else row.bias(query.dtype, form.window, groups)
    sinks = None
    if form.sinks is not None:
        per_query = form.sinks.view(num_kv_heads, groups, 1).expand(-1, -1, num_queries)
        sinks = per_query.reshape(1, num_kv_heads, groups * num_queries, 1)
    attended = attend(folded[None], keys[None], values[None], bias, form, sinks)
    out.copy_(
        attended.view(num_kv_heads, groups, num_queries, head_dim)
        .permute(2, 0, 1, 3)
        .reshape(num_queries, num_heads, head_dim)
    )


def attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    bias: Tensor | None,
    form: AttentionForm,
    sinks: Tensor | None,
) -> Tensor:
    """Attention of queries folded by KV head, fused where the form allows it.

    Args:
        query: [batch, num_kv_heads, num_folded, head_dim].
        keys: [batch, num_kv_heads, num_keys, head_dim].
        values: likewise.
        bias: added to the scores, broadcast over them; None adds nothing.
        form: what the layer's attention looks like.
        sinks: [batch, num_kv_heads, num_folded, 1] of the form; None without sinks.

    Returns:
        [batch, num_kv_heads, num_folded, head_dim].
    """
    if form.softcap is None and sinks is None:
        return F.scaled_dot_product_attention(query, keys, values, attn_mask=bias, scale=form.scale)
    return _plain_attention(query, keys, values, bias, form, sinks)


def _plain_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    bias: Tensor | None,
    form: AttentionForm,
    sinks: Tensor | None,
) -> Tensor:
    """Attention in plain steps, for soft caps and sinks, which the fused kernel does not know."""
    scores = torch.matmul(query, keys.transpose(-1, -2)) * form.scale
    if form.softcap is not None:
        scores = torch.tanh(scores / form.softcap) * form.softcap
    if bias is not None:
        scores = scores + bias
    if sinks is not None:
        scores = torch.cat([scores, sinks.to(scores.dtype)], dim=-1)
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights[..., : keys.shape[-2]], values)


class PaddedAttention:
    """All requests at once in a padded batch; nothing is read back to the host."""

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        pool: KVPool,
        layer: int,
        plan: AttentionPlan,
        form: AttentionForm,
    ) -> Tensor:
        """See `PagedAttention`."""
        pool.write(layer, plan.slot_mapping, key, value)
        index = plan.padded
        if index is None:
            raise UsageError("this plan was made for the loop, not for the padded batch")
        batch, num_queries = index.queries.shape
        num_keys = index.slots.shape[1]
        keys, values = (
            each.view(each.shape[0], batch, num_keys, -1).transpose(0, 1)
            for each in pool.gather(layer, index.slots.reshape(-1))
        )
        padded = query.index_select(0, index.queries.reshape(-1))
        padded = padded.view(batch, num_queries, *query.shape[1:]).transpose(1, 2)
        groups = padded.shape[1] // keys.shape[1]
        seen = _allowed(index, form.window)[:, None]
        if form.softcap is None and form.sinks is None:
            attended = F.scaled_dot_product_attention(
                padded, keys, values, attn_mask=seen, scale=form.scale, enable_gqa=groups > 1
            )
        else:
            bias = torch.zeros(seen.shape, dtype=query.dtype, device=query.device)
            sinks = None
            if form.sinks is not None:
                sinks = form.sinks.view(1, -1, 1, 1).expand(batch, -1, num_queries, 1)
            attended = _plain_attention(
                padded,
                keys.repeat_interleave(groups, dim=1),
                values.repeat_interleave(groups, dim=1),
                bias.masked_fill_(~seen, float("-inf")),
                form,
                sinks,
            )
        flat = attended.transpose(1, 2).reshape(batch * num_queries, *query.shape[1:])
        return flat.index_select(0, index.scatter)


def _allowed(index: PaddedIndex, window: int | None) -> Tensor:
    """[B, Q, C] bool; a padding query sits at position 0 and sees key 0 only."""
    keys, position = index.key_position[:, None], index.position[:, :, None]
    seen = keys <= position
    if window is not None:
        seen = seen & (keys > position - window)
    return seen if index.hidden is None else seen & ~index.hidden


def make_attention(backend: str) -> PagedAttention:
    """The implementation of a resolved backend name."""
    return LoopAttention() if backend == "loop" else PaddedAttention()
