"""Chains whose tokens are drawn from the head's distribution q, accepted so that p comes out.

A drafted token d was drawn from q. The target's choice in its place is

    d                              if a coin lies below p(d) / q(d)
    drawn from norm(max(0, p - q))     otherwise; d itself has weight 0 there

so d is accepted with min(1, p(d) / q(d)) and the choice has the distribution p, whatever q is: q(d) *
min(1, p(d) / q(d)) and what the second line adds are p(d) together (Leviathan et al. 2023,
arXiv:2211.17192; Chen et al. 2023, arXiv:2302.01318). Behind the last drafted token the choice is
drawn from p. Temperature, top-k and top-p shape q as they shape p: what the target never says need
not be drafted.

The second draw and the last one use the target's coin of their position: it decides one of the two,
and nothing else looks at it.
"""

import torch
from torch import Tensor

from eaglebench.spec.likeliest import Choices
from eaglebench.spec.proposal import DraftOdds
from eaglebench.spec.sampling import STEEPEST, Sampler

_TWO_SIDES = 2
"""Both p and q move with their logits."""


def choose_by_ratio(
    sampler: Sampler,
    logits: Tensor,
    *,
    drafted: Tensor,
    odds: DraftOdds,
    accept_coins: Tensor,
    coins: Tensor,
) -> Choices:
    """The target's choice behind the roots and behind every drafted token of some chains.

    Args:
        sampler: what makes p of `logits`; it made q as well.
        logits: [num_nodes + num_chains, vocab]: first those that a drafted token faces, then those
            behind the last token of each chain.
        drafted: [num_nodes] int64 target ids.
        odds: what they were drawn from.
        accept_coins: [num_nodes] float64 in [0, 1): whether each is accepted.
        coins: [num_nodes + num_chains] float64 in [0, 1): what is chosen where none is.

    Returns:
        Ids, and how close the call was, in units of a logit.
    """
    p = sampler.probabilities(logits)
    q = odds.over_targets(p.shape[-1])
    faced = p[: len(drafted)]  # behind a last token there is none to accept
    p_drafted = faced.gather(1, drafted[:, None]).squeeze(1)
    q_drafted = q.gather(1, drafted[:, None]).squeeze(1)
    lead = p_drafted - accept_coins * q_drafted
    left = (faced - q).clamp(min=0)
    mass = left.sum(dim=-1)
    # p and q are the same but for rounding: then nothing is left, and p is as good
    weights = torch.cat([torch.where(mass[:, None] > 0, left, faced), p[len(drafted) :]])
    drawn = sampler.draw(weights, coins)
    ids, gaps = drawn.ids.clone(), drawn.gaps.clone()
    is_accepted = lead > 0
    ids[: len(drafted)] = torch.where(is_accepted, drafted, ids[: len(drafted)])
    scale = STEEPEST * sampler.temperature / _TWO_SIDES
    redrawn = gaps[: len(drafted)] * mass / _TWO_SIDES
    margin = lead.abs() * scale
    gaps[: len(drafted)] = torch.where(is_accepted, margin, torch.minimum(margin, redrawn))
    return Choices(ids, gaps)
