"""Attention over paged KV: write this step's K and V, then attend through each request's slots.

A batch is flattened: the tokens of all requests stand behind one another in one row. The plan says
which tokens belong together and where their context lies; it is passed in, nothing is global.

    tokens   | a a a | b | c c c c c |        queries of three requests
    plan       ctx 9   5   5                  query j of n sits at position ctx - n + j

Two implementations of one seam: `LoopAttention` takes the requests one after another (CPU),
`PaddedAttention` all at once in a padded batch without a host sync (CUDA).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.errors import UsageError
from eaglebench.kv.pool import KVPool

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


@dataclass(slots=True)
class RowSpan:
    """One request's tokens in the batch.

    Attributes:
        start: first query; queries are [start, end) of the batch.
        end: one past the last query.
        context_len: keys are positions [0, context_len).
        slots: [context_len] int64.
        run_start: first slot where the slots are one ascending run, so that no gather is needed.
        biases: additive masks by (dtype, window, groups), made when first asked for.
    """

    start: int
    end: int
    context_len: int
    slots: Tensor
    run_start: int | None
    biases: dict[tuple[torch.dtype, int | None, int], Tensor] = field(default_factory=dict)

    @property
    def num_queries(self) -> int:
        """Queries of this request."""
        return self.end - self.start

    def allowed(self, window: int | None) -> Tensor:
        """[num_queries, context_len] bool: which keys each query may see."""
        keys = torch.arange(self.context_len, device=self.slots.device)
        queries = keys[self.context_len - self.num_queries :, None]
        seen = keys <= queries
        if window is not None:
            seen = seen & (keys > queries - window)
        return seen

    def bias(self, dtype: torch.dtype, window: int | None, groups: int) -> Tensor:
        """[groups * num_queries, context_len]: 0 where allowed, -inf elsewhere."""
        name = (dtype, window, groups)
        if name not in self.biases:
            seen = self.allowed(window).repeat(groups, 1)
            bias = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
            self.biases[name] = bias.masked_fill_(~seen, float("-inf"))
        return self.biases[name]

    def sees_everything(self, window: int | None) -> bool:
        """Whether no key is masked for any query."""
        return self.num_queries == 1 and (window is None or window >= self.context_len)


@dataclass(slots=True)
class PaddedIndex:
    """Index tensors of a padded batch: B requests, Q queries and C keys at most.

    Attributes:
        queries: [B, Q] int64 rows of the flattened batch; padding repeats row 0.
        slots: [B, C] int64; padding is slot 0, the dummy page's first.
        position: [B, Q] int64 position of each query; padding sits at position 0.
        context_len: [B] int64.
        scatter: [num_tokens] int64 into B * Q, where each token's output is found.
    """

    queries: Tensor
    slots: Tensor
    position: Tensor
    context_len: Tensor
    scatter: Tensor


@dataclass(slots=True)
class AttentionPlan:
    """What one forward writes and attends to.

    Attributes:
        slot_mapping: [num_tokens] int64 slots written, in batch order.
        rows: the requests of the batch, for the loop.
        padded: index tensors, for the padded batch.
        window: the same tokens as window layers see them, where those have a pool of their own.
    """

    slot_mapping: Tensor
    rows: tuple[RowSpan, ...]
    padded: PaddedIndex | None
    window: "AttentionPlan | None" = None


def make_plan(
    rows: Sequence[tuple[NDArray[np.int64], int]], *, device: torch.device, backend: str
) -> AttentionPlan:
    """Plan one forward from each request's context slots and its number of queries.

    The last `num_queries` context slots of a request are the ones this forward writes.
    """
    mapping = np.concatenate([slots[len(slots) - count :] for slots, count in rows])
    spans: list[RowSpan] = []
    padded = None
    if backend == "padded":
        padded = _pad(rows, device)
    else:
        start = 0
        for slots, count in rows:
            spans.append(
                RowSpan(start, start + count, len(slots), _to(slots, device), _ascending_run(slots))
            )
            start += count
    return AttentionPlan(_to(mapping, device), tuple(spans), padded)


def _to(values: NDArray[np.int64], device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(device)


def _ascending_run(slots: NDArray[np.int64]) -> int | None:
    """First slot if the slots are one ascending run."""
    first, count = int(slots[0]), len(slots)
    if first < 0 or int(slots[-1]) - first != count - 1:
        return None
    return first if bool((slots[1:] - slots[:-1] == 1).all()) else None


def _pad(rows: Sequence[tuple[NDArray[np.int64], int]], device: torch.device) -> PaddedIndex:
    counts = np.array([count for _, count in rows])
    contexts = np.array([len(slots) for slots, _ in rows])
    num_queries, num_keys = int(counts.max()), int(contexts.max())
    queries = np.zeros((len(rows), num_queries), dtype=np.int64)
    position = np.zeros((len(rows), num_queries), dtype=np.int64)
    padded_slots = np.zeros((len(rows), num_keys), dtype=np.int64)
    scatter = []
    start = 0
    for index, (slots, count) in enumerate(rows):
        queries[index, :count] = np.arange(start, start + count)
        position[index, :count] = np.arange(len(slots) - count, len(slots))
        padded_slots[index, : len(slots)] = slots
        scatter.append(index * num_queries + np.arange(count))
        start += count
    return PaddedIndex(
        queries=_to(queries, device),
        slots=_to(padded_slots, device),
        position=_to(position, device),
        context_len=_to(contexts.astype(np.int64), device),
        scatter=_to(np.concatenate(scatter), device),
    )


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
    if form.softcap is None and form.sinks is None:
        attended = F.scaled_dot_product_attention(
            folded[None], keys[None], values[None], attn_mask=bias, scale=form.scale
        )[0]
    else:
        sinks = None
        if form.sinks is not None:
            per_query = form.sinks.view(num_kv_heads, groups, 1).expand(-1, -1, num_queries)
            sinks = per_query.reshape(num_kv_heads, groups * num_queries, 1)
        attended = _explicit(folded, keys, values, bias, form, sinks)
    out.copy_(
        attended.view(num_kv_heads, groups, num_queries, head_dim)
        .permute(2, 0, 1, 3)
        .reshape(num_queries, num_heads, head_dim)
    )


def _explicit(
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
        seen = self._allowed(index, num_keys, form.window)[:, None]
        if form.softcap is None and form.sinks is None:
            attended = F.scaled_dot_product_attention(
                padded, keys, values, attn_mask=seen, scale=form.scale, enable_gqa=groups > 1
            )
        else:
            bias = torch.zeros(seen.shape, dtype=query.dtype, device=query.device)
            sinks = None
            if form.sinks is not None:
                sinks = form.sinks.view(1, -1, 1, 1).expand(batch, -1, num_queries, 1)
            attended = _explicit(
                padded,
                keys.repeat_interleave(groups, dim=1),
                values.repeat_interleave(groups, dim=1),
                bias.masked_fill_(~seen, float("-inf")),
                form,
                sinks,
            )
        flat = attended.transpose(1, 2).reshape(batch * num_queries, *query.shape[1:])
        return flat.index_select(0, index.scatter)

    def _allowed(self, index: PaddedIndex, num_keys: int, window: int | None) -> Tensor:
        """[B, Q, C] bool; a padding query sits at position 0 and sees key 0 only."""
        keys = torch.arange(num_keys, device=index.slots.device)
        position = index.position[:, :, None]
        seen = keys <= position
        if window is not None:
            seen = seen & (keys > position - window)
        return seen


def make_attention(backend: str) -> PagedAttention:
    """The implementation of a resolved backend name."""
    return LoopAttention() if backend == "loop" else PaddedAttention()
