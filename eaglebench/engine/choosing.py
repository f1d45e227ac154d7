"""The target's choices for a batch: greedy rows and rows whose tokens are drawn."""

import torch
from torch import Tensor

from eaglebench.contracts.generation import Sampling
from eaglebench.engine.batch import Batch, num_logits, row_positions
from eaglebench.engine.plan import Row, VerifyRow
from eaglebench.spec.choices import Choices, choose_greedy, flag_unusable
from eaglebench.spec.drafter import Drawing
from eaglebench.spec.rejection import choose_by_ratio
from eaglebench.spec.sampling import Sampler, coin
from eaglebench.spec.thresholds import Thresholds, choose_leniently

_NEXT = 1
"""Logits at a position decide the token at the next one."""


def choose(batch: Batch, logits: Tensor) -> Choices:
    """One token for each row of `logits` [num_logits, vocab], in the batch's order."""
    if all(row.request.request.sampling is None for row in batch.rows):
        return choose_greedy(logits)
    ids, gaps = [], []
    for row, start in zip(batch.rows, batch.logit_starts, strict=True):
        count = num_logits(row, wants_seam_guess=batch.wants_seam_guess)
        if not count:
            continue
        mine = logits[start : start + count]
        sampling = row.request.request.sampling
        chosen = choose_greedy(mine) if sampling is None else _draw(row, sampling, mine)
        ids.append(chosen.ids)
        gaps.append(chosen.gaps)
    return flag_unusable(Choices(torch.cat(ids), torch.cat(gaps)), logits)


def _draw(row: Row, sampling: Sampling, logits: Tensor) -> Choices:
    """Draw the tokens that a row's logits decide, by the rule of its request."""
    sampler = make_sampler(sampling)
    positions = [int(position) + _NEXT for position in row_positions(row)[-len(logits) :]]
    coins = _tensor([coin(sampling.coin_key, position) for position in positions], logits)
    if not isinstance(row, VerifyRow):
        return sampler.choose(logits, coins)
    proposal = row.request.proposal
    accept_coins = [coin(sampling.coin_key, position, "accept") for position in positions]
    if proposal.odds is not None:
        drafted = torch.tensor(proposal.token_ids, dtype=torch.int64, device=logits.device)
        return choose_by_ratio(
            sampler,
            logits,
            drafted=drafted,
            odds=proposal.odds,
            accept_coins=_tensor(accept_coins[: len(drafted)], logits),
            coins=coins,
        )
    if sampling.is_lossy:
        thresholds = Thresholds(sampling.threshold_single, sampling.threshold_acc)
        return choose_leniently(
            sampler, logits, proposal, thresholds, accept_coins=accept_coins, coins=coins
        )
    return sampler.choose(logits, coins)


def make_sampler(sampling: Sampling) -> Sampler:
    """The sampler of a request."""
    return Sampler(sampling.temperature, sampling.top_p, sampling.top_k)


def make_drawing(sampling: Sampling | None) -> Drawing | None:
    """How a request's drafts are drawn; None where they are the likeliest."""
    if sampling is None or not sampling.draws_drafts:
        return None
    return Drawing(make_sampler(sampling), sampling.coin_key)


def _tensor(coins: list[float], like: Tensor) -> Tensor:
    return torch.tensor(coins, dtype=torch.float64, device=like.device)
