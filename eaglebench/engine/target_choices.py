"""The target's choices for a batch: greedy rows and rows whose tokens are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.engine.batch import Batch, num_logits, row_positions
from eaglebench.engine.plan import Row, VerifyRow
from eaglebench.model.layout_row import upload
from eaglebench.records.generation import Sampling
from eaglebench.spec.drafter import Drawing
from eaglebench.spec.likeliest import Choices, choose_greedy, flag_unusable
from eaglebench.spec.proposal import NOTHING_PROPOSED, DraftOdds, Proposal
from eaglebench.spec.rejection import choose_by_ratio
from eaglebench.spec.sampling import Purpose, Sampler, coin
from eaglebench.spec.thresholds import Thresholds, child_tokens, choose_leniently

_NEXT = 1
"""Logits at a position decide the token at the next one."""


def choose(batch: Batch, logits: Tensor) -> Choices:
    """One token for each row of `logits` [num_logits, vocab], in the batch's order.

    Rows that are drawn by one rule are drawn together: what is copied to the device does not depend
    on how many there are, and nothing is read back.
    """
    chosen = choose_greedy(logits)
    drawn: dict[_Rule, list[_Part]] = {}
    for row, start in zip(batch.rows, batch.logit_starts, strict=True):
        sampling = row.request.request.sampling
        count = num_logits(row, wants_seam_guess=batch.wants_seam_guess)
        if sampling is not None and count:
            drawn.setdefault(_rule(row, sampling), []).append(_part(row, sampling, start, count))
    for rule, parts in drawn.items():
        places, mine = _draw(rule, parts, logits)
        ids = chosen.ids.index_copy(0, places, mine.ids)
        gaps = chosen.gaps.index_copy(0, places, mine.gaps)
        chosen = Choices(ids, gaps)
    return flag_unusable(chosen, logits) if drawn else chosen


@dataclass(frozen=True, slots=True)
class _Rule:
    """How tokens are drawn: by their own coins; by what they were drafted from; by thresholds."""

    sampler: Sampler
    has_odds: bool = False
    thresholds: Thresholds | None = None


def _rule(row: Row, sampling: Sampling) -> _Rule:
    sampler = make_sampler(sampling)
    if isinstance(row, VerifyRow) and row.request.proposal.odds is not None:
        return _Rule(sampler, has_odds=True)
    if isinstance(row, VerifyRow) and sampling.is_lossy:
        return _Rule(sampler, False, Thresholds(sampling.threshold_single, sampling.threshold_acc))
    return _Rule(sampler)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one row of the batch decides.

    Attributes:
        proposal: what its logits are to accept; nothing where a prompt ends.
        coin_key: whose coins decide.
        places: [n] int64 rows of the logits.
        positions: [n] int64 positions of the tokens they decide.
    """

    proposal: Proposal
    coin_key: str
    places: NDArray[np.int64]
    positions: NDArray[np.int64]

    def coins(self, purpose: Purpose = "target") -> NDArray[np.float64]:
        """[n] float64."""
        return np.array([coin(self.coin_key, each, purpose) for each in self.positions.tolist()])


def _part(row: Row, sampling: Sampling, start: int, count: int) -> _Part:
    proposal = row.request.proposal if isinstance(row, VerifyRow) else NOTHING_PROPOSED
    positions = row_positions(row)[-count:] + _NEXT
    return _Part(proposal, sampling.coin_key, np.arange(start, start + count), positions)


def _draw(rule: _Rule, parts: Sequence[_Part], logits: Tensor) -> tuple[Tensor, Choices]:
    """Rows of the logits, and what is drawn for them by one rule."""
    if rule.has_odds:
        return _draw_by_ratio(rule.sampler, parts, logits)
    all_places = np.concatenate([part.places for part in parts])
    flips = np.concatenate([part.coins() for part in parts])
    if rule.thresholds is None:
        (places,) = upload([all_places], logits.device)
        (coins,) = upload([flips], logits.device)
        return places, rule.sampler.choose(logits.index_select(0, places), coins)
    table = child_tokens([part.proposal for part in parts])
    places, children = upload([all_places, table], logits.device)
    accept = np.concatenate([part.coins("accept") for part in parts])
    coins, accept_coins = upload([flips, accept], logits.device)
    chosen = choose_leniently(
        rule.sampler,
        logits.index_select(0, places),
        children,
        rule.thresholds,
        accept_coins=accept_coins,
        coins=coins,
    )
    return places, chosen


def _draw_by_ratio(
    sampler: Sampler, parts: Sequence[_Part], logits: Tensor
) -> tuple[Tensor, Choices]:
    """The same for chains that were drawn from the head's distribution."""
    flips = [part.coins() for part in parts]
    facing, behind = slice(-1), slice(-1, None)  # the last of a chain's rows faces no drafted token
    places, drafted = upload(
        [
            np.concatenate([p.places[side] for side in (facing, behind) for p in parts]),
            np.concatenate([np.array(p.proposal.token_ids, dtype=np.int64) for p in parts]),
        ],
        logits.device,
    )
    coins, accept_coins = upload(
        [
            np.concatenate([each[side] for side in (facing, behind) for each in flips]),
            np.concatenate([part.coins("accept")[facing] for part in parts]),
        ],
        logits.device,
    )
    odds = DraftOdds.joined([p.proposal.odds for p in parts if p.proposal.odds is not None])
    chosen = choose_by_ratio(
        sampler,
        logits.index_select(0, places),
        drafted=drafted,
        odds=odds,
        accept_coins=accept_coins,
        coins=coins,
    )
    return places, chosen


def make_sampler(sampling: Sampling) -> Sampler:
    """The sampler of a request."""
    return Sampler(sampling.temperature, sampling.top_p, sampling.top_k)


def make_drawing(sampling: Sampling | None) -> Drawing | None:
    """How a request's drafts are drawn; None where they are the likeliest."""
    if sampling is None or not sampling.draws_drafts:
        return None
    return Drawing(make_sampler(sampling), sampling.coin_key)
