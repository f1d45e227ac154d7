"""Attention over paged KV: write this step's K and V, then attend through each request's slots.

The layout says which tokens belong together and where their context lies (`attention_layout.py`); it is
passed in, nothing is global.

Two implementations of one seam: `LoopAttention` takes the requests one after another (CPU),
`PaddedAttention` those of like length at once in padded batches without a host sync (CUDA).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from eaglebench.errors import UsageError
from eaglebench.kv.pool import PlacedLayer
from eaglebench.model.attention_layout import AttentionLayout
from eaglebench.model.padded_layout import PaddedGroup

BACKENDS = ("loop", "padded")


def resolve_backend(name: str, device: torch.device) -> str:
    """`auto` is the loop on a CPU and the padded batch elsewhere; UsageError for other names."""
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


class PagedAttention(ABC):
    """The seam: K and V of a step are written, then its queries attend."""

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        place: PlacedLayer,
        layout: AttentionLayout,
        form: AttentionForm,
    ) -> Tensor:
        """Write K and V, attend, return [num_tokens, num_heads, head_dim].

        Args:
            query: [num_tokens, num_heads, head_dim].
            key: [num_tokens, num_kv_heads, head_dim].
            value: [num_tokens, num_kv_heads, head_dim].
            place: where K and V of the layer live.
            layout: which tokens belong together.
            form: what the layer's attention looks like.
        """
        place.pool.write(place.layer, layout.slot_mapping, key, value)
        return self.attend(query, place, layout, form)

    @abstractmethod
    def attend(
        self, query: Tensor, place: PlacedLayer, layout: AttentionLayout, form: AttentionForm
    ) -> Tensor:
        """[num_tokens, num_heads, head_dim] over what is written."""


class LoopAttention(PagedAttention):
    """One request after another."""

    def attend(
        self, query: Tensor, place: PlacedLayer, layout: AttentionLayout, form: AttentionForm
    ) -> Tensor:
        """See `PagedAttention`."""
        pool, layer = place.pool, place.layer
        out = torch.empty_like(query)
        for row in layout.rows:
            if row.slots is not None:
                keys, values = pool.gather(layer, row.slots)
            else:
                assert row.run_start is not None
                keys, values = pool.slice(layer, row.run_start, row.run_start + row.context_len)
            bias = row.bias(query.dtype, form.window, query.shape[1] // keys.shape[0])
            mine = query[None, row.start : row.end]
            attended = _attend_grouped(mine, keys[None], values[None], bias, form)
            out[row.start : row.end] = attended[0]
        return out


class PaddedAttention(PagedAttention):
    """Rows of like length at once in padded batches; nothing is read back to the host."""

    def attend(
        self, query: Tensor, place: PlacedLayer, layout: AttentionLayout, form: AttentionForm
    ) -> Tensor:
        """See `PagedAttention`."""
        if layout.padded is None:
            raise UsageError("this layout was made for the loop, not for the padded batch")
        outputs = [
            _attend_padded(
                query, *place.pool.gather(place.layer, each.slots.reshape(-1)), each, form
            )
            for each in layout.padded.groups
        ]
        return torch.cat(outputs).index_select(0, layout.padded.scatter)


def make_attention(backend: str) -> PagedAttention:
    """The implementation of a resolved backend name."""
    return LoopAttention() if backend == "loop" else PaddedAttention()


def _attend_padded(
    query: Tensor, keys: Tensor, values: Tensor, group: PaddedGroup, form: AttentionForm
) -> Tensor:
    """[B * Q, num_heads, head_dim] of a group, from the K and V of all its slots."""
    batch, num_queries = group.queries.shape
    num_heads, head_dim = query.shape[1:]
    num_kv_heads = keys.shape[0]
    keys, values = (
        each.view(num_kv_heads, batch, -1, head_dim).transpose(0, 1) for each in (keys, values)
    )
    mine = query.index_select(0, group.queries.reshape(-1))
    bias = group.bias(query.dtype, form.window, num_heads // num_kv_heads)
    attended = _attend_grouped(
        mine.view(batch, num_queries, num_heads, head_dim), keys, values, bias, form
    )
    return attended.reshape(batch * num_queries, num_heads, head_dim)


def _attend_grouped(
    query: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None, form: AttentionForm
) -> Tensor:
    """Attention whose query heads that share a KV head are folded into the queries.

    No kernel has to know of groups then: with a mask the fast ones do not.

    Args:
        query: [batch, num_queries, num_heads, head_dim].
        keys: [batch, num_kv_heads, num_keys, head_dim].
        values: likewise.
        bias: over the folded queries; None adds nothing.
        form: what the layer's attention looks like.

    Returns:
        Of the shape of `query`.
    """
    batch, num_queries, num_heads, head_dim = query.shape
    num_kv_heads = keys.shape[1]
    groups = num_heads // num_kv_heads
    folded = (
        query.view(batch, num_queries, num_kv_heads, groups, head_dim)
        .permute(0, 2, 3, 1, 4)
        .reshape(batch, num_kv_heads, groups * num_queries, head_dim)
    )
    sinks = None
    if form.sinks is not None:
        per_query = form.sinks.view(1, num_kv_heads, groups, 1).expand(batch, -1, -1, num_queries)
        sinks = per_query.reshape(batch, num_kv_heads, groups * num_queries, 1)
    return (
        attend_folded(folded, keys, values, bias, form, sinks)
        .view(batch, num_kv_heads, groups, num_queries, head_dim)
        .permute(0, 3, 1, 2, 4)
        .reshape(batch, num_queries, num_heads, head_dim)
    )


def attend_folded(
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
    scores = torch.matmul(query, keys.transpose(-1, -2)) * form.scale  # no kernel knows of these
    if form.softcap is not None:
        scores = torch.tanh(scores / form.softcap) * form.softcap
    if bias is not None:
        scores = scores + bias
    if sinks is not None:
        scores = torch.cat([scores, sinks.to(scores.dtype)], dim=-1)
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights[..., : keys.shape[-2]], values)
