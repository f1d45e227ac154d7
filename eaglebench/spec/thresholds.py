"""SGLang's acceptance thresholds: below 1 drafts are accepted more often than the target says them.

Behind a node the children are tried in order, with one coin u for all of them. With P the sum of the
target's probabilities of the children tried so far, this one included, a child is accepted if

    p > 0  and  (u < P / threshold_acc  or  p >= threshold_single)

and if none is, a token is drawn from p without the children. At 1 and 1 that is sampling from p in
another order than `Sampler.choose` goes through it, which is what runs then. Below 1 it is lossy:
what comes out does not follow the target's distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eaglebench.spec.choices import Choices
from eaglebench.spec.proposal import ROOT, Proposal, verify_row
from eaglebench.spec.sampling import STEEPEST, Sampler


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Both in (0, 1]."""

    single: float
    acc: float


@dataclass(frozen=True, slots=True)
class _Trial:
    """The child accepted behind a node, None for none, and by how much, as a probability."""

    child: int | None
    margin: float


def choose_leniently(
    sampler: Sampler,
    logits: Tensor,
    proposal: Proposal,
    thresholds: Thresholds,
    *,
    accept_coins: Sequence[float],
    coins: Tensor,
) -> Choices:
    """The choice behind the root and behind every node.

    Args:
        sampler: what makes p of `logits`.
        logits: [num_nodes + 1, vocab].
        proposal: the nodes.
        thresholds: how generously they are accepted.
        accept_coins: one in [0, 1) a row: which child is accepted.
        coins: [num_nodes + 1] float64 in [0, 1): what is drawn where none is.

    Returns:
        Ids, and how close the call was, in units of a logit.
    """
    p = sampler.probabilities(logits)
    weights = p.clone()
    trials: list[_Trial] = []
    for node in range(ROOT, len(proposal.token_ids)):
        row = verify_row(node)
        children = proposal.children(node)
        tokens = [proposal.token_ids[child] for child in children]
        trials.append(_try(children, p[row, tokens].tolist(), accept_coins[row], thresholds))
        weights[row, tokens] = 0.0
    mass = weights.sum(dim=-1)
    # all of p lies on children of whom rounding accepted none: then p is as good
    drawn = sampler.draw(torch.where(mass[:, None] > 0, weights, p), coins)
    ids, gaps = drawn.ids.tolist(), (drawn.gaps * mass).tolist()
    for row, trial in enumerate(trials):
        margin = trial.margin * STEEPEST * sampler.temperature
        if trial.child is None:
            gaps[row] = min(gaps[row], margin)
        else:
            ids[row], gaps[row] = proposal.token_ids[trial.child], margin
    return Choices(drawn.ids.new_tensor(ids), drawn.gaps.new_tensor(gaps))


def _try(
    children: Sequence[int], probabilities: Sequence[float], coin: float, thresholds: Thresholds
) -> _Trial:
    """Go through the children until one is accepted."""
    summed = 0.0
    margin = float("inf")
    for child, probability in zip(children, probabilities, strict=True):
        summed += probability
        by_sum = summed - coin * thresholds.acc
        by_itself = probability - thresholds.single
        if probability > 0 and (by_sum > 0 or by_itself >= 0):
            return _Trial(child, min(margin, max(by_sum, by_itself)))
        margin = min(margin, abs(by_sum), abs(by_itself))
    return _Trial(None, margin)
