"""What the head proposes: a tree of tokens under the pending root; a chain is a thin one.

node      0    1    2          parents -1, -1, 0: nodes 0 and 1 follow the root, 2 follows 0
depth     1    1    2
position  N    N    N+1        of the token, where N tokens are known
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ROOT = -1
"""Parent of the nodes of the first level."""


@dataclass(frozen=True, slots=True)
class DraftOdds:
    """What the tokens of a chain were drawn from.

    Attributes:
        probabilities: [num_nodes, draft_vocab] float64.
        target_ids: [draft_vocab] int64 target id of every draft id.
    """

    probabilities: Tensor
    target_ids: Tensor

    @staticmethod
    def joined(several: "Sequence[DraftOdds]") -> "DraftOdds":
        """Of chains of one head, behind one another."""
        probabilities = torch.cat([each.probabilities for each in several])
        return DraftOdds(probabilities, several[0].target_ids)

    def over_targets(self, vocab_size: int) -> Tensor:
        """[num_nodes, vocab_size] float64; what the head can't say has probability 0."""
        num_nodes = len(self.probabilities)
        spread = torch.zeros(
            (num_nodes, vocab_size), dtype=torch.float64, device=self.probabilities.device
        )
        return spread.index_add_(1, self.target_ids, self.probabilities)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Proposed tokens, parents first.

    Attributes:
        token_ids: target vocabulary; siblings differ.
        gaps: how close the call was, one a node: the draft's top-2 logit gap in a chain, the
            smallest lead of any choice that shaped the tree otherwise.
        parents: node each one follows, `ROOT` for the first level; empty stands for a chain.
        odds: what the tokens were drawn from; None where they are the likeliest.
    """

    token_ids: tuple[int, ...]
    gaps: tuple[float, ...]
    parents: tuple[int, ...] = ()
    odds: DraftOdds | None = field(default=None, compare=False, repr=False)

    @property
    def is_chain(self) -> bool:
        """Whether every node follows the one before it."""
        return not self.parents

    def parent(self, node: int) -> int:
        """The node that `node` follows."""
        return self.parents[node] if self.parents else node - 1

    def depths(self) -> NDArray[np.int64]:
        """[num_nodes + 1] int64: depth of the root (0) and of every node."""
        depths = np.zeros(len(self.token_ids) + 1, dtype=np.int64)
        for node in range(len(self.token_ids)):
            depths[node + 1] = depths[self.parent(node) + 1] + 1
        return depths

    def ancestry(self) -> NDArray[np.bool_]:
        """[num_nodes + 1, num_nodes + 1] bool: row i sees column j, itself and its ancestors.

        Row and column 0 are the root.
        """
        seen = np.eye(len(self.token_ids) + 1, dtype=np.bool_)
        for node in range(len(self.token_ids)):
            seen[node + 1] |= seen[self.parent(node) + 1]
        return seen

    def children(self, node: int) -> list[int]:
        """Nodes that follow `node` (`ROOT` for the root), in order."""
        return [child for child in range(len(self.token_ids)) if self.parent(child) == node]


NOTHING_PROPOSED = Proposal((), ())


def chain(
    token_ids: Sequence[int], gaps: Sequence[float], odds: DraftOdds | None = None
) -> Proposal:
    """A chain."""
    return Proposal(tuple(token_ids), tuple(gaps), odds=odds)


def verify_row(node: int) -> int:
    """Row of a node among the verified tokens; the root stands in front of the nodes."""
    return node + 1
