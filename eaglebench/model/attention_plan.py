"""The plan of one forward: which tokens belong together, what is written, what is attended to.

A batch is flattened: the tokens of all requests stand behind one another in one row.

    tokens   | a a a | b | c c c c c |        queries of three requests
    plan       ctx 9   5   5                  query j of n sits at position ctx - n + j

The last queries of a request may be a tree instead of a run: then a mask says which of its last keys
each of them sees, and depths say where they sit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One request's part of a forward.

    Attributes:
        slots: [context_len] int64 slots of everything it may look at; the last `num_queries` are
            the ones this forward writes.
        num_queries: tokens it computes.
        tree: where the last keys are nodes of a tree; None is a causal run.
    """

    slots: NDArray[np.int64]
    num_queries: int
    tree: "Tree | None" = None


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes among a request's last keys; the last of them are its queries.

    Attributes:
        seen: [num_queries, num_nodes] bool: which nodes each query sees, itself included;
            everything before the nodes is seen by all, as far as the layer's window reaches.
        depths: [num_nodes] int64 positions of the nodes, counted from the first of them: windows
            reach over positions, and siblings share one.
    """

    seen: NDArray[np.bool_]
    depths: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TreeTail:
    """A `Tree` on the device."""

    seen: Tensor
    depths: Tensor


@dataclass(slots=True)
class RowSpan:
    """One request's tokens in the batch.

    Attributes:
        start: first query; queries are [start, end) of the batch.
        end: one past the last query.
        context_len: keys are positions [0, context_len).
        slots: [context_len] int64.
        run_start: first slot where the slots are one ascending run, so that no gather is needed.
        tail: the tree among the last keys; None is a causal run.
        biases: additive masks by (dtype, window, groups), made when first asked for.
    """

    start: int
    end: int
    context_len: int
    slots: Tensor
    run_start: int | None
    tail: TreeTail | None = None
    biases: dict[tuple[torch.dtype, int | None, int], Tensor] = field(default_factory=dict)

    @property
    def num_queries(self) -> int:
        """Queries of this request."""
        return self.end - self.start

    def allowed(self, window: int | None) -> Tensor:
        """[num_queries, context_len] bool: which keys each query may see."""
        if self.tail is not None:
            return _allowed_in_tree(self.tail, self.context_len, window)
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
        return (
            self.tail is None
            and self.num_queries == 1
            and (window is None or window >= self.context_len)
        )


@dataclass(slots=True)
class PaddedIndex:
    """Index tensors of a padded batch: B requests, Q queries and C keys at most.

    Attributes:
        queries: [B, Q] int64 rows of the flattened batch; padding repeats row 0.
        slots: [B, C] int64; padding is slot 0, the dummy page's first.
        position: [B, Q] int64 position of each query; padding sits at position 0.
        key_position: [B, C] int64 position of each key; padding counts on.
        hidden: [B, Q, C] bool keys of a tree that a query does not see; None without trees.
        scatter: [num_tokens] int64 into B * Q, where each token's output is found.
    """

    queries: Tensor
    slots: Tensor
    position: Tensor
    key_position: Tensor
    hidden: Tensor | None
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


def make_plan(rows: Sequence[PlanRow], *, device: torch.device, backend: str) -> AttentionPlan:
    """Plan one forward over these rows."""
    mapping = np.concatenate([row.slots[len(row.slots) - row.num_queries :] for row in rows])
    if backend == "padded":
        return AttentionPlan(_to(mapping, device), (), _pad(rows, device))
    spans: list[RowSpan] = []
    start = 0
    for row in rows:
        end = start + row.num_queries
        spans.append(
            RowSpan(
                start,
                end,
                len(row.slots),
                _to(row.slots, device),
                _ascending_run(row.slots),
                _tail(row, device),
            )
        )
        start = end
    return AttentionPlan(_to(mapping, device), tuple(spans), None)


def _allowed_in_tree(tail: TreeTail, context_len: int, window: int | None) -> Tensor:
    """[num_queries, context_len] bool: the context in front of the tree, then what the mask says."""
    num_queries, num_nodes = tail.seen.shape
    front = context_len - num_nodes
    before = torch.ones((num_queries, front), dtype=torch.bool, device=tail.seen.device)
    seen = torch.cat([before, tail.seen], dim=1)
    if window is None:
        return seen
    at = front + tail.depths
    keys = torch.cat([torch.arange(front, device=at.device), at])
    return seen & (keys > at[-num_queries:, None] - window)


def _tail(row: PlanRow, device: torch.device) -> TreeTail | None:
    if row.tree is None:
        return None
    seen = torch.from_numpy(np.ascontiguousarray(row.tree.seen)).to(device)
    return TreeTail(seen, _to(row.tree.depths, device))


def _to(values: NDArray[np.int64], device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(device)


def _ascending_run(slots: NDArray[np.int64]) -> int | None:
    """First slot if the slots are one ascending run."""
    first, count = int(slots[0]), len(slots)
    if first < 0 or int(slots[-1]) - first != count - 1:
        return None
    return first if bool((slots[1:] - slots[:-1] == 1).all()) else None


def _pad(rows: Sequence[PlanRow], device: torch.device) -> PaddedIndex:
    num_queries = max(row.num_queries for row in rows)
    num_keys = max(len(row.slots) for row in rows)
    shape = (len(rows), num_queries)
    queries = np.zeros(shape, dtype=np.int64)
    position = np.zeros(shape, dtype=np.int64)
    slots = np.zeros((len(rows), num_keys), dtype=np.int64)
    key_position = np.tile(np.arange(num_keys, dtype=np.int64), (len(rows), 1))
    hidden = np.zeros((len(rows), num_queries, num_keys), dtype=np.bool_)
    scatter = []
    start = 0
    for index, row in enumerate(rows):
        count, context = row.num_queries, len(row.slots)
        queries[index, :count] = np.arange(start, start + count)
        position[index, :count] = np.arange(context - count, context)
        slots[index, :context] = row.slots
        scatter.append(index * num_queries + np.arange(count))
        start += count
        if row.tree is not None:
            front = context - len(row.tree.depths)
            hidden[index, :count, front:context] = ~row.tree.seen
            key_position[index, front:context] = front + row.tree.depths
            position[index, :count] = front + row.tree.depths[-count:]
    return PaddedIndex(
        queries=_to(queries, device),
        slots=_to(slots, device),
        position=_to(position, device),
        key_position=_to(key_position, device),
        hidden=torch.from_numpy(hidden).to(device) if hidden.any() else None,
        scatter=_to(np.concatenate(scatter), device),
    )
