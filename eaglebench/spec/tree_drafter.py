"""The EAGLE head at work on trees: extend committed slots, then grow level by level.

    slots   0 .. N-2              N-1 ..           topk a level
            committed, settled    scratch: draft KV of the nodes that go on

A node attends to the committed slots, to its true ancestors among the scratch slots, and to itself.
Scratch slots are the request's look-ahead; the next verify step writes over them.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.model.attention_plan import make_plan
from eaglebench.model.plan_row import Tree, table_row
from eaglebench.spec.choices import rank_best
from eaglebench.spec.drafter import DraftOutcome, Extender, ExtendRow
from eaglebench.spec.proposal import NOTHING_PROPOSED, ROOT, Proposal
from eaglebench.spec.tree import TreeGrowth


class TreeDrafter(Extender):
    """Extends draft KV and proposes trees for many requests at once."""

    def run(self, rows: Sequence[ExtendRow], aux: Tensor) -> DraftOutcome:
        """Extend every row, then propose for those that ask for it (see `ChainDrafter.run`)."""
        extended = self.extend(rows, aux)
        last_hidden = extended.last_hidden
        proposals: list[Proposal] = [NOTHING_PROPOSED] * len(rows)
        forwards = [1] * len(rows)
        written = [row.table.slots(row.start, row.end) for row in rows]
        proposing = [index for index, row in enumerate(rows) if row.shape.num_levels > 0]
        if proposing:
            chosen = [rows[index] for index in proposing]
            trees = self._grow(chosen, last_hidden[proposing])
            for index, row, tree in zip(proposing, chosen, trees, strict=True):
                proposals[index] = tree.prune(row.shape.num_nodes)
                forwards[index] = row.shape.num_levels
                scratch = row.table.slots(row.end, row.end + row.shape.num_scratch_slots)
                written[index] = np.concatenate([written[index], scratch])
        return DraftOutcome(tuple(proposals), tuple(forwards), tuple(written), extended.num_sound())

    def _grow(self, rows: Sequence[ExtendRow], hidden: Tensor) -> list[TreeGrowth]:
        """Grow all trees; `hidden` is [num_rows, hidden], of each row's last settled slot."""
        trees = [TreeGrowth(row.shape.topk) for row in rows]
        scratch: list[list[int]] = [[] for _ in rows]  # candidate in each scratch slot so far
        states = [state[None] for state in hidden]
        for level in range(max(row.shape.num_levels for row in rows)):
            active = [i for i, row in enumerate(rows) if row.shape.num_levels > level]
            if level:
                self._forward_level(rows, active, trees, scratch, states)
            self._choose(rows, active, trees, states)
        return trees

    def _choose(
        self,
        rows: Sequence[ExtendRow],
        active: Sequence[int],
        trees: Sequence[TreeGrowth],
        states: Sequence[Tensor],
    ) -> None:
        """Add the children of every frontier node."""
        logits = self.head.logits(torch.cat([states[i] for i in active]))
        exact = logits.double() if logits.dtype == torch.float64 else logits.float()
        log_probs = torch.log_softmax(exact, dim=-1)
        topk = min(max(rows[i].shape.topk for i in active), log_probs.shape[-1] - 1)
        ranked, columns = rank_best(log_probs, topk)
        ids = self.head.target_ids(columns.reshape(-1)).view(-1, topk)
        best = ranked.double()
        usable = torch.isfinite(logits).all(dim=-1)
        smallest = (best[:, :-1] - best[:, 1:]).min(dim=-1).values
        leads = torch.where(usable, smallest, float("nan")).tolist()
        tokens, probs = ids.cpu().numpy(), best[:, :topk].cpu().numpy()
        start = 0
        for i in active:
            end = start + len(states[i])
            trees[i].grow(tokens[start:end], probs[start:end], leads[start:end])
            start = end

    def _forward_level(
        self,
        rows: Sequence[ExtendRow],
        active: Sequence[int],
        trees: Sequence[TreeGrowth],
        scratch: Sequence[list[int]],
        states: list[Tensor],
    ) -> None:
        """Write draft KV of the frontier nodes and replace `states` by theirs."""
        plan_rows, tokens, positions, inputs = [], [], [], []
        for i in active:
            row, tree = rows[i], trees[i]
            parents = _states_of_parents(tree, scratch[i])
            inputs.append(states[i].index_select(0, self.tensor(parents)))
            scratch[i] += tree.frontier
            num_new = len(tree.frontier)
            depth = len(scratch[i]) // row.shape.topk  # levels written, this one included
            positions.append(np.full(num_new, row.end + depth - 1))
            tokens.append(np.array([tree.token_ids[c] for c in tree.frontier]))
            depths = np.repeat(np.arange(depth), row.shape.topk)  # of all scratch slots, in order
            seen = _ancestry(tree, scratch[i], num_new)
            end = row.end + len(scratch[i])
            plan_rows.append(table_row(row.table, end, num_new, Tree(seen, depths)))
        hidden = self.head.forward(
            self.tensor(np.concatenate(tokens)),
            torch.cat(inputs),
            self.tensor(np.concatenate(positions)),
            make_plan(plan_rows, device=self.device, backend=self.head.attention_backend),
            self.pool,
        )
        counts = [len(trees[i].frontier) for i in active]
        for i, state in zip(active, torch.split(hidden, counts), strict=True):
            states[i] = state


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
