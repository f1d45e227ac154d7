"""The layout of one forward: which tokens belong together, what is written, what is attended to.

A batch is flattened: the tokens of all requests stand behind one another in one row.

    tokens   | a a a | b | c c c c c |        queries of three requests
    layout     ctx 9   5   5                  query j of n sits at position ctx - n + j

The last queries of a request may be a tree instead of a run: then a mask says which of its last keys
each of them sees, and depths say where they sit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.model.layout_row import LayoutRow, additive, causal, upload
from eaglebench.model.padded_layout import PaddedLayout, pad


@dataclass(frozen=True, slots=True)
class TreeTail:
    """The `Tree` of a row, on the device."""

    seen: Tensor
    depths: Tensor


@dataclass(slots=True)
class RowSpan:
    """One request's tokens in the batch.

    Attributes:
        start: first query; queries are [start, end) of the batch.
        end: one past the last query.
        context_len: keys are positions [0, context_len).
        run_start: first slot where the slots are one ascending run, so that no gather is needed.
        slots: [context_len] int64; None where they are a run.
        device: where the layout lives.
        tail: the tree among the last keys; None is a causal run.
        biases: additive masks by (dtype, window, groups), made when first asked for.
    """

    start: int
    end: int
    context_len: int
    run_start: int | None
    slots: Tensor | None
    device: torch.device
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
        keys = torch.arange(self.context_len, device=self.device)
        return causal(keys, keys[self.context_len - self.num_queries :, None], window)

    def bias(self, dtype: torch.dtype, window: int | None, groups: int) -> Tensor | None:
        """[groups * num_queries, context_len]: 0 where allowed, -inf elsewhere; None masks nothing."""
        is_single = self.tail is None and self.num_queries == 1
        if is_single and (window is None or window >= self.context_len):
            return None
        name = (dtype, window, groups)
        if name not in self.biases:
            self.biases[name] = additive(self.allowed(window).repeat(groups, 1), dtype)
        return self.biases[name]


@dataclass(slots=True)
class AttentionLayout:
    """What one forward writes and attends to.

    Attributes:
        slot_mapping: [num_tokens] int64 slots written, in batch order.
        rows: the requests of the batch, for the loop.
        padded: groups of rows, for the padded batch.
        window: the same tokens as window layers see them, where those have a pool of their own.
    """

    slot_mapping: Tensor
    rows: tuple[RowSpan, ...]
    padded: PaddedLayout | None
    window: "AttentionLayout | None" = None


def make_layout(
    rows: Sequence[LayoutRow], *, device: torch.device, backend: str
) -> AttentionLayout:
    """Lay out one forward over these rows."""
    mapping = np.concatenate([row.slots[len(row.slots) - row.num_queries :] for row in rows])
    if backend == "padded":
        written, padded = pad(rows, mapping, device)
        return AttentionLayout(written, (), padded)
    trees = [row.tree for row in rows if row.tree is not None]
    runs = [
        row.run_start if row.run_start is not None else _ascending_run(row.slots) for row in rows
    ]
    scattered = [row.slots for row, run in zip(rows, runs, strict=True) if run is None]
    written, *depths = upload([mapping, *(tree.depths for tree in trees)], device)
    slots = iter(_lent(scattered, device))
    seen = upload([tree.seen for tree in trees], device)
    tails = iter([TreeTail(*each) for each in zip(seen, depths, strict=True)])
    spans: list[RowSpan] = []
    start = 0
    for row, run in zip(rows, runs, strict=True):
        end = start + row.num_queries
        mine = next(slots) if run is None else None
        tail = None if row.tree is None else next(tails)
        spans.append(RowSpan(start, end, len(row.slots), run, mine, device, tail))
        start = end
    return AttentionLayout(written, tuple(spans), None)


def _lent(slots: Sequence[NDArray[np.int64]], device: torch.device) -> list[Tensor]:
    """Slots of rows on the device; on the host they stay where they are, however many they are."""
    if device.type == "cpu":
        return [torch.from_numpy(each) for each in slots]
    return upload(slots, device)


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


def _ascending_run(slots: NDArray[np.int64]) -> int | None:
    """First slot if the slots are one ascending run."""
    first, count = int(slots[0]), len(slots)
    if first < 0 or int(slots[-1]) - first != count - 1:
        return None
    return first if bool((slots[1:] - slots[:-1] == 1).all()) else None
