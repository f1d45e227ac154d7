"""Growing and pruning a draft tree: which candidates go on, and which are proposed.

    level 0      topk candidates under the root
    level l > 0  topk candidates under each of the topk nodes kept at level l - 1
    proposed     the best `num_nodes` of all candidates

Scores are summed log-probabilities, so they never rise along a path; of equal scores the candidate
that was grown first comes first. Hence what is proposed is closed under ancestors. Candidates are
numbered as in SGLang: level by level, the children of one node side by side.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eaglebench.spec.proposal import NOTHING_PROPOSED, ROOT, Proposal


@dataclass(slots=True)
class TreeGrowth:
    """The candidates of one request.

    Attributes:
        token_ids, scores, parents: of every candidate in the order of growth; `parents` are
            candidates, `ROOT` for the first level.
        frontier: candidates that go on, in order of score.
        margin: smallest lead of a choice made so far.
    """

    topk: int
    token_ids: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    frontier: list[int] = field(default_factory=list)
    margin: float = float("inf")

    def grow(
        self, token_ids: NDArray[np.int64], log_probs: NDArray[np.float64], leads: Sequence[float]
    ) -> None:
        """Add a level: the children of each frontier node, best first.

        Args:
            token_ids: [num_frontier, topk] target ids; one row for the root at the first level.
            log_probs: [num_frontier, topk], falling along each row.
            leads: [num_frontier] smallest lead among a row's choices, the first not taken included;
                NaN where the head's logits were not finite, and then the whole tree has gap NaN.
        """
        first = len(self.token_ids)
        grown_from = self.frontier or [ROOT]
        for parent, ids, probs in zip(grown_from, token_ids, log_probs, strict=True):
            start = 0.0 if parent == ROOT else self.scores[parent]
            self.token_ids += ids.tolist()
            self.scores += (start + probs).tolist()
            self.parents += [parent] * len(ids)
        new = range(first, len(self.token_ids))
        ranked = best_first(self.scores, new)
        cut_margin = _cut_margin(self.scores, ranked, self.topk)
        self.margin = float(np.min([self.margin, *leads, cut_margin]))  # `min` would lose a NaN
        self.frontier = ranked[: self.topk]

    def prune(self, num_nodes: int) -> Proposal:
        """The best candidates as a proposal, in the order in which they grew."""
        if not self.token_ids or not num_nodes:
            return NOTHING_PROPOSED
        ranked = best_first(self.scores, range(len(self.token_ids)))
        margin = float(np.min([self.margin, _cut_margin(self.scores, ranked, num_nodes)]))
        kept = sorted(ranked[:num_nodes])
        place = {candidate: node for node, candidate in enumerate(kept)}
        return Proposal(
            tuple(self.token_ids[candidate] for candidate in kept),
            (margin,) * len(kept),
            tuple(place.get(self.parents[candidate], ROOT) for candidate in kept),
        )


def best_first(scores: Sequence[float], candidates: Sequence[int]) -> list[int]:
    """Candidates by falling score; of equal ones the first grown, so parents precede children."""
    return sorted(candidates, key=lambda candidate: (-scores[candidate], candidate))


def _cut_margin(scores: Sequence[float], ranked: Sequence[int], num_kept: int) -> float:
    """By how much the last one kept leads the first one left out."""
    if num_kept >= len(ranked):
        return float("inf")
    return scores[ranked[num_kept - 1]] - scores[ranked[num_kept]]
