"""How much a proposal may hold, and what it needs while it is made."""

from dataclasses import dataclass, replace


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
        """Nodes a tree of this depth and width grows in all: topk + (levels - 1) * topk^2."""
        if not self.num_levels:
            return 0
        return self.topk + (self.num_levels - 1) * self.topk**2

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
