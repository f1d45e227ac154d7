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
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.spec.likeliest import Choices
from eaglebench.spec.proposal import ROOT, Proposal, verify_row
from eaglebench.spec.sampling import STEEPEST, Sampler


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Both in (0, 1]."""

    single: float
    acc: float


NO_CHILD = -1
"""Fills the rows of a table of children."""


def child_tokens(proposals: Sequence[Proposal]) -> NDArray[np.int64]:
    """[num_rows, most children] target ids of the children of every root and node, in order.

    The rows of each proposal's root and nodes follow those of the one before; where a node has
    fewer children than others, `NO_CHILD` stands behind them.
    """
    rows: list[list[int]] = []
    for proposal in proposals:
        behind: list[list[int]] = [[] for _ in range(ROOT, len(proposal.token_ids))]
        for node, token_id in enumerate(proposal.token_ids):
            behind[verify_row(proposal.parent(node))].append(token_id)
        rows += behind
    table = np.full((len(rows), max(1, *map(len, rows))), NO_CHILD, dtype=np.int64)
    for row, tokens in zip(table, rows, strict=True):
        row[: len(tokens)] = tokens
    return table


def choose_leniently(
    sampler: Sampler,
    logits: Tensor,
    children: Tensor,
    thresholds: Thresholds,
    *,
    accept_coins: Tensor,
    coins: Tensor,
) -> Choices:
    """The choice behind every root and node of some proposals; nothing is read back to the host.

    Args:
        sampler: what makes p of `logits`.
        logits: [num_rows, vocab].
        children: [num_rows, most children] int64, see `child_tokens`.
        thresholds: how generously they are accepted.
        accept_coins: [num_rows] float64 in [0, 1): which child is accepted.
        coins: [num_rows] float64 in [0, 1): what is drawn where none is.

    Returns:
        Ids, and how close the call was, in units of a logit.
    """
    p = sampler.probabilities(logits)
    is_child, tokens = children != NO_CHILD, children.clamp(min=0)
    is_taken = torch.zeros_like(p).scatter_add(1, tokens, is_child.to(p.dtype)) > 0
    weights = p.masked_fill(is_taken, 0.0)
    mass = weights.sum(dim=-1)
    # all of p lies on children of whom rounding accepted none: then p is as good
    drawn = sampler.draw(torch.where(mass[:, None] > 0, weights, p), coins)
    trial = _try(
        p.gather(1, tokens).masked_fill(~is_child, 0.0), is_child, accept_coins, thresholds
    )
    margin = trial.margin * STEEPEST * sampler.temperature
    accepted = tokens.gather(1, trial.child[:, None]).squeeze(1)
    return Choices(
        torch.where(trial.is_accepted, accepted, drawn.ids),
        torch.where(trial.is_accepted, margin, torch.minimum(drawn.gaps * mass, margin)),
    )


class _Trial(NamedTuple):
    """What became of the children behind each row.

    Attributes:
        is_accepted: [num_rows] bool: whether one was.
        child: [num_rows] int64 place of that one; 0 where there is none.
        margin: [num_rows] by how much the answer was not another one, as a probability.
    """

    is_accepted: Tensor
    child: Tensor
    margin: Tensor


def _try(
    probabilities: Tensor, is_child: Tensor, accept_coins: Tensor, thresholds: Thresholds
) -> _Trial:
    """Go through the children, each [num_rows, most children], until one is accepted."""
    by_sum = torch.cumsum(probabilities, dim=-1) - accept_coins[:, None] * thresholds.acc
    by_itself = probabilities - thresholds.single
    passes = is_child & (probabilities > 0) & ((by_sum > 0) | (by_itself >= 0))
    child = passes.to(torch.int64).argmax(dim=-1)  # the first of several
    is_rejected = is_child & (torch.cumsum(passes, dim=-1) == 0)
    missed = torch.minimum(by_sum.abs(), by_itself.abs())
    nearest = missed.masked_fill(~is_rejected, float("inf")).amin(dim=-1)
    passed_by = torch.maximum(by_sum, by_itself).gather(1, child[:, None]).squeeze(1)
    is_accepted = passes.any(dim=-1)
    margin = torch.where(is_accepted, torch.minimum(nearest, passed_by), nearest)
    return _Trial(is_accepted, child, margin)
