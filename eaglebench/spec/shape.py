"""How much a proposal may hold, and the slots it takes while it is made.

Behind S committed slots stands the pending root, so S + 1 tokens are known. A chain takes one slot a
token past S: the head writes all but the last, and that one is where the next step's last draft will
go. The nodes of a tree share positions, so its scratch, top-k slots at every level but the last, has
nothing to do with how far the context reaches and may lie past it.
"""

from dataclasses import dataclass, replace

from eaglebench.records.draft_shape import num_candidates

_PENDING_ROOT = 1
"""Known tokens without a slot: the root of the next verify step."""


@dataclass(frozen=True, slots=True)
class DraftShape:
    """Levels, branches and nodes of a proposal.

    Attributes:
        num_levels: levels below the root; 0 proposes nothing.
        topk: branches kept at a level; 1 is a chain.
        num_nodes: most nodes, the root not counted.
    """

    num_levels: int
    topk: int
    num_nodes: int

    @property
    def is_chain(self) -> bool:
        """Whether there is one branch only."""
        return self.topk == 1

    @property
    def num_candidates(self) -> int:
        """Nodes a tree of this depth and width grows in all."""
        return num_candidates(self.num_levels, self.topk)

    @property
    def num_scratch_slots(self) -> int:
        """Slots the head writes while it proposes: topk at every level but the last.

        The last level predicts and writes nothing.
        """
        return max(0, self.num_levels - 1) * self.topk

    def at_most(self, num_levels: int) -> "DraftShape":
        """The same shape with no more levels than that."""
        levels = max(0, min(self.num_levels, num_levels))
        shorter = replace(self, num_levels=levels)
        return replace(shorter, num_nodes=min(self.num_nodes, shorter.num_candidates))


NO_DRAFT = DraftShape(0, 1, 0)


@dataclass(frozen=True, slots=True)
class DraftRoom:
    """What may be proposed where, and the slots that takes: the one formula of both.

    Attributes:
        shape: what is proposed far from any limit.
        limit: positions that a proposal may fill: the context, or fewer where the head was made for
            fewer.
    """

    shape: DraftShape
    limit: int

    def after(self, num_committed: int) -> DraftShape:
        """What is proposed behind so many committed slots and the pending root."""
        return self.shape.at_most(self.limit - num_committed - _PENDING_ROOT)

    def num_lookahead(self, written_end: int, committed: range) -> int:
        """Slots past `written_end` that the proposal at the end of a step may take.

        Args:
            written_end: one past the last slot that the step writes itself.
            committed: numbers of slots that may be committed by then, one for each outcome.
        """
        if self.shape.is_chain:
            return self.shape.at_most(self.limit - written_end).num_nodes
        ends = [end + self.after(end).num_scratch_slots for end in committed]
        return max(0, max(ends) - written_end)

    @property
    def most_slots_of_a_step(self) -> int:
        """Most slots past the committed ones that a verify step and its proposal hold."""
        written = _PENDING_ROOT + self.shape.num_nodes
        if self.shape.is_chain:
            return written + self.shape.num_nodes
        return max(written, _PENDING_ROOT + self.shape.num_levels + self.shape.num_scratch_slots)

    def most_slots(self, context_length: int) -> int:
        """Most slots one request can ever hold: those of a tree at the limit lie past the context."""
        if self.shape.is_chain:
            return context_length
        ends = [context_length]
        for num_levels in range(1, self.shape.num_levels + 1):
            shape, num_known = self.shape.at_most(num_levels), self.limit - num_levels
            num_committed = num_known - _PENDING_ROOT
            ends += [num_known + shape.num_nodes, num_committed + shape.num_scratch_slots]
        return max(ends)
