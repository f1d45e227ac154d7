"""The layout of a padded batch: rows of like length side by side, padded to the longest of them.

    rows        queries x keys         groups
    verify      9 x 70, 9 x 81         one of [2, 9, 81]
    prefill     3000 x 3000            one of [1, 3000, 3000]

A group does the work of its longest row for every row, so a row joins a group only where that makes
little of it. One padded batch of a long prompt beside seven short rows did eight times its work.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.model.layout_row import LayoutRow, additive, causal, upload

MOST_PADDED = 1.25
"""Queries times keys of a padded group, by those of its rows."""
NOT_WORTH_A_GROUP = 1 << 16
"""Queries times keys that cost less than the kernels of one more group."""


@dataclass(slots=True)
class PaddedGroup:
    """Index tensors of one padded batch: B rows, Q queries and C keys at most.

    Attributes:
        queries: [B, Q] int64 rows of the flattened batch; padding repeats row 0.
        slots: [B, C] int64; padding is slot 0, the dummy page's first.
        position: [B, Q] int64 position of each query; padding sits at position 0.
        key_position: [B, C] int64 position of each key, padding counts on; [1, C] without trees, where
            all rows count alike.
        hidden: [B, Q, C] bool keys of a tree that a query does not see; None without trees.
        is_even: single queries, all with as many keys: nothing is masked without a window.
        biases: additive masks by (dtype, window, heads folded), made when first asked for.
    """

    queries: Tensor
    slots: Tensor
    position: Tensor
    key_position: Tensor
    hidden: Tensor | None
    is_even: bool
    biases: dict[tuple[torch.dtype, int | None, int], Tensor] = field(default_factory=dict)

    def allowed(self, window: int | None) -> Tensor:
        """[B, Q, C] bool; a padding query sits at position 0 and sees key 0 only."""
        seen = causal(self.key_position[:, None], self.position[:, :, None], window)
        return seen if self.hidden is None else seen & ~self.hidden

    def bias(self, dtype: torch.dtype, window: int | None, num_folded: int) -> Tensor | None:
        """[B, 1, num_folded * Q, C]: 0 where allowed, -inf elsewhere; None where nothing is masked.

        `num_folded` query heads stand behind one another, as in the queries they are added for.
        """
        num_keys = self.slots.shape[1]
        if self.is_even and (window is None or window >= num_keys):
            return None
        name = (dtype, window, num_folded)
        if name not in self.biases:
            seen = self.allowed(window).repeat(1, num_folded, 1)[:, None]
            self.biases[name] = additive(seen, dtype)
        return self.biases[name]


@dataclass(frozen=True, slots=True)
class PaddedLayout:
    """All groups of a forward.

    Attributes:
        groups: rows of like length.
        scatter: [num_tokens] int64, where each token's output is found among the outputs of all
            groups, B * Q of each behind one another.
    """

    groups: tuple[PaddedGroup, ...]
    scatter: Tensor


def pad(
    rows: Sequence[LayoutRow], mapping: NDArray[np.int64], device: torch.device
) -> tuple[Tensor, PaddedLayout]:
    """The slots written, [num_tokens] int64 on the device, and the padded batches of all rows."""
    starts = np.cumsum([0, *(row.num_queries for row in rows)])
    scatter = np.empty(starts[-1], dtype=np.int64)
    laid: list[_Laid] = []
    num_outputs = 0
    for group in alike(rows):
        chosen = [rows[index] for index in group]
        laid.append(_lay(chosen, starts[group]))
        num_queries = laid[-1].num_queries
        for place, index in enumerate(group):
            first = num_outputs + place * num_queries
            count = rows[index].num_queries
            scatter[starts[index] : starts[index] + count] = first + np.arange(count)
        num_outputs += len(group) * num_queries
    numbers = upload([mapping, scatter, *(part for each in laid for part in each.numbers)], device)
    masks = iter(upload([each.hidden for each in laid if each.hidden is not None], device))
    parts = iter(numbers[2:])
    groups = []
    for each in laid:
        queries, slots, position, key_position = (next(parts) for _ in each.numbers)
        hidden = None if each.hidden is None else next(masks)
        groups.append(PaddedGroup(queries, slots, position, key_position, hidden, each.is_even))
    return numbers[0], PaddedLayout(tuple(groups), numbers[1])


def alike(rows: Sequence[LayoutRow]) -> list[list[int]]:
    """Row numbers in groups of like length, each in the batch's order."""
    groups: list[_Open] = []
    sizes = [(row.num_queries, len(row.slots)) for row in rows]
    for index in sorted(range(len(rows)), key=lambda index: sizes[index], reverse=True):
        if not any(group.takes(index, *sizes[index]) for group in groups):
            groups.append(_Open([index], *sizes[index], sizes[index][0] * sizes[index][1]))
    return [sorted(group.members) for group in groups]


@dataclass(slots=True)
class _Open:
    """A group that is being filled."""

    members: list[int]
    num_queries: int
    num_keys: int
    work: int

    def takes(self, index: int, num_queries: int, num_keys: int) -> bool:
        """Take one more row in where that makes little useless work."""
        most = max(self.num_queries, num_queries), max(self.num_keys, num_keys)
        padded = (len(self.members) + 1) * most[0] * most[1]
        work = self.work + num_queries * num_keys
        if padded > MOST_PADDED * work + NOT_WORTH_A_GROUP:
            return False
        self.members.append(index)
        (self.num_queries, self.num_keys), self.work = most, work
        return True


@dataclass(frozen=True, slots=True)
class _Laid:
    """The arrays of a group on the host; `numbers` in the order of `PaddedGroup`."""

    numbers: tuple[NDArray[np.int64], ...]
    hidden: NDArray[np.bool_] | None
    num_queries: int
    is_even: bool


def _lay(rows: Sequence[LayoutRow], starts: NDArray[np.int64]) -> _Laid:
    """Lay rows side by side; `starts` says where their queries begin in the flattened batch."""
    num_queries = max(row.num_queries for row in rows)
    num_keys = max(len(row.slots) for row in rows)
    queries = np.zeros((len(rows), num_queries), dtype=np.int64)
    position = np.zeros((len(rows), num_queries), dtype=np.int64)
    slots = np.zeros((len(rows), num_keys), dtype=np.int64)
    has_trees = any(row.tree is not None for row in rows)
    key_position = np.arange(num_keys, dtype=np.int64)[None]
    if has_trees:
        key_position = np.tile(key_position, (len(rows), 1))
    hidden = np.zeros((len(rows), num_queries, num_keys), dtype=np.bool_) if has_trees else None
    for index, row in enumerate(rows):
        count, context = row.num_queries, len(row.slots)
        queries[index, :count] = np.arange(starts[index], starts[index] + count)
        position[index, :count] = np.arange(context - count, context)
        slots[index, :context] = row.slots
        if row.tree is not None and hidden is not None:
            front = context - len(row.tree.depths)
            hidden[index, :count, front:context] = ~row.tree.seen
            key_position[index, front:context] = front + row.tree.depths
            position[index, :count] = front + row.tree.depths[-count:]
    is_even = not has_trees and num_queries == 1 and all(len(row.slots) == num_keys for row in rows)
    return _Laid((queries, slots, position, key_position), hidden, num_queries, is_even)
