"""The EAGLE head at work on trees: extend committed slots, then grow level by level.

    slots   0 .. N-2              N-1 ..           topk a level
            committed, settled    scratch: draft KV of the nodes that go on

A node attends to the committed slots, to its true ancestors among the scratch slots, and to itself.
Scratch slots are the request's look-ahead; the next verify step writes over them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow, Tree, table_row, upload
from eaglebench.spec.drafter import Drafter, ExtendRow
from eaglebench.spec.likeliest import rank_best
from eaglebench.spec.proposal import ROOT, Proposal
from eaglebench.spec.tree import TreeGrowth


class TreeDrafter(Drafter):
    """Proposes trees for many requests at once."""

    def propose(self, rows: Sequence[ExtendRow], hidden: Tensor) -> list[Proposal]:
        """The best nodes of the trees that grow behind each row."""
        trees = self._grow(rows, hidden)
        return [tree.prune(row.shape.num_nodes) for row, tree in zip(rows, trees, strict=True)]

    def _grow(self, rows: Sequence[ExtendRow], hidden: Tensor) -> list[TreeGrowth]:
        """Grow all trees; `hidden` is [num_rows, hidden], of each row's last settled slot."""
        growing = [_Growing(row, TreeGrowth(row.shape.topk)) for row in rows]
        active = growing
        for level in range(max(row.shape.num_levels for row in rows)):
            if level:
                previous, active = active, [g for g in active if g.row.shape.num_levels > level]
                hidden = self._forward_level(previous, active, hidden)
            self._choose(active, hidden)
        return [each.tree for each in growing]

    def _choose(self, active: Sequence["_Growing"], hidden: Tensor) -> None:
        """Add the children of every frontier node; `hidden` holds their states, tree by tree."""
        logits = self.head.logits(hidden)
        exact = logits.double() if logits.dtype == torch.float64 else logits.float()
        log_probs = torch.log_softmax(exact, dim=-1)
        topk = min(max(each.tree.topk for each in active), log_probs.shape[-1] - 1)
        ranked, columns = rank_best(log_probs, topk)
        ids = self.head.target_ids(columns.reshape(-1)).view(-1, topk)
        best = ranked.double()
        usable = torch.isfinite(logits).all(dim=-1)
        smallest = (best[:, :-1] - best[:, 1:]).min(dim=-1).values
        leads = torch.where(usable, smallest, float("nan"))
        # one wait for a level; ids are whole numbers in float64, too
        numbers = torch.cat([ids.double(), best[:, :topk], leads[:, None]], dim=1).cpu().numpy()
        start = 0
        for each in active:
            mine = numbers[start : start + each.num_states]
            ids_of_mine = mine[:, :topk].astype(np.int64)
            each.tree.grow(ids_of_mine, mine[:, topk:-1], mine[:, -1].tolist())
            start += len(mine)

    def _forward_level(
        self, previous: Sequence["_Growing"], active: Sequence["_Growing"], hidden: Tensor
    ) -> Tensor:
        """Write draft KV of the frontier nodes; returns their states, tree by tree.

        Args:
            previous: the trees whose states `hidden` holds.
            active: those of them that go on.
            hidden: [num_states, hidden] of the nodes that `previous` went on from.
        """
        ends = np.cumsum([each.num_states for each in previous])
        starts = {id(g): int(end) - g.num_states for g, end in zip(previous, ends, strict=True)}
        parents = [starts[id(each)] + each.go_on() for each in active]
        tokens, positions, parent_rows = upload(
            [
                np.concatenate([each.frontier_tokens() for each in active]),
                np.concatenate([each.frontier_positions() for each in active]),
                np.concatenate(parents),
            ],
            self.device,
        )
        layout_rows = [each.layout_row() for each in active]
        return self.head.forward(
            tokens,
            hidden.index_select(0, parent_rows),
            positions,
            make_layout(layout_rows, device=self.device, backend=self.head.attention_backend),
            self.pool,
        )


@dataclass(slots=True)
class _Growing:
    """A tree that grows, and where its nodes are written.

    Attributes:
        row: the request's row.
        tree: candidates so far.
        scratch: candidate in each scratch slot so far, topk a level.
    """

    row: ExtendRow
    tree: TreeGrowth
    scratch: list[int] = field(default_factory=list)

    @property
    def num_states(self) -> int:
        """Nodes of the level written last, which the next one goes on from; at first the root."""
        return self.tree.topk if self.scratch else 1

    @property
    def num_levels(self) -> int:
        """Levels written."""
        return len(self.scratch) // self.tree.topk

    def go_on(self) -> NDArray[np.int64]:
        """Take the frontier into scratch; returns the state, counted from 0, each goes on from."""
        parents = _states_of_parents(self.tree, self.scratch)
        self.scratch += self.tree.frontier
        return parents

    def frontier_tokens(self) -> NDArray[np.int64]:
        """[topk] target ids of the level written last."""
        return np.array([self.tree.token_ids[c] for c in self.tree.frontier], dtype=np.int64)

    def frontier_positions(self) -> NDArray[np.int64]:
        """[topk] positions of the level written last; siblings share one."""
        last_level = self.num_levels - 1
        return np.full(len(self.tree.frontier), self.row.end + last_level, dtype=np.int64)

    def layout_row(self) -> LayoutRow:
        """What the level written last attends to."""
        num_new = len(self.tree.frontier)
        depths = np.repeat(np.arange(self.num_levels), self.tree.topk)  # of the scratch slots
        seen = _ancestry(self.tree, self.scratch, num_new)
        end = self.row.end + len(self.scratch)
        return table_row(self.row.table, end, num_new, Tree(seen, depths))


def _states_of_parents(tree: TreeGrowth, scratch: Sequence[int]) -> NDArray[np.int64]:
    """Row of the previous level's states that each frontier node goes on from."""
    previous = list(scratch[-tree.topk :]) if scratch else [ROOT]
    return np.array([previous.index(tree.parents[c]) for c in tree.frontier], dtype=np.int64)


def _ancestry(tree: TreeGrowth, scratch: Sequence[int], num_new: int) -> NDArray[np.bool_]:
    """[num_new, num_scratch] bool: which scratch slots each of the last nodes attends to."""
    place = {candidate: index for index, candidate in enumerate(scratch)}
    seen = np.zeros((num_new, len(scratch)), dtype=np.bool_)
    for row, candidate in enumerate(scratch[-num_new:]):
        node = candidate
        while node != ROOT:
            seen[row, place[node]] = True
            node = tree.parents[node]
    return seen
