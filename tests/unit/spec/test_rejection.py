"""Chains drawn from q: what comes out follows p, whatever q is, and the test sees where it does not.

Two positions of a chain over five tokens, their distributions depending on the token before, the
whole joint distribution as the oracle. Coins come from fixed keys.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.spec.accept import accept_chosen
from eaglebench.spec.likeliest import Choices
from eaglebench.spec.proposal import DraftOdds, chain
from eaglebench.spec.rejection import choose_by_ratio
from eaglebench.spec.sampling import Sampler
from tests.tiny_vocabulary import (
    AT_ROOT,
    BEHIND,
    DRAWS,
    LEAST_P,
    OTHER,
    SAMPLERS,
    TARGET,
    VOCAB,
    WRONG_P,
    coins,
    draw_many,
    drawn_behind,
    exact_pairs,
    p_value,
)

ALL = torch.arange(VOCAB)
SOME = torch.tensor([0, 2, 3])
"""Target ids of a reduced draft vocabulary."""
FIVE_SIGMA = 5

Rule = Callable[..., Choices]


def next_two(sampler: Sampler, draft: Tensor, draft_ids: Tensor, rule: Rule) -> NDArray[np.int64]:
    """[DRAWS, 2]: tokens of positions 0 and 1, drafted, verified, and drawn where none was drafted.

    Coins are grouped by what was drafted, so that one call of the rule serves many draws: drafts
    decide what the distributions are, and coins what comes out of them.
    """
    first_odds = sampler.probabilities(draft[AT_ROOT : AT_ROOT + 1, draft_ids])
    first = draw_many(sampler, first_odds, 0, "draft")
    tokens = np.zeros((DRAWS, 2), dtype=np.int64)
    for one in range(len(draft_ids)):
        row = BEHIND + int(draft_ids[one])
        odds = sampler.probabilities(draft[row : row + 1, draft_ids])
        second = draw_many(sampler, odds, 1, "draft")
        for two in range(len(draft_ids)):
            members = np.flatnonzero((first == one) & (second == two))
            drafted = draft_ids[[one, two]]
            both = DraftOdds(torch.cat([first_odds, odds]), draft_ids)
            tokens[members] = verified(sampler, drafted, both, members, rule)
    return tokens


def verified(
    sampler: Sampler, drafted: Tensor, odds: DraftOdds, members: NDArray[np.int64], rule: Rule
) -> NDArray[np.int64]:
    """[num_members, 2]: what these draws deliver at positions 0 and 1 from one chain of two."""
    rows = [AT_ROOT, *(BEHIND + int(token) for token in drafted)]
    chosen = []
    for place in range(2):
        one = DraftOdds(odds.probabilities[place : place + 1], odds.target_ids)
        chosen.append(choose_many(sampler, rows[place], drafted[place], one, place, members, rule))
    delivered = []
    proposal = chain(drafted.tolist(), [0.0, 0.0])
    for draw, (first, second) in zip(members, zip(*chosen, strict=True), strict=True):
        emitted = accept_chosen(proposal, (first, second, 0)).emitted_ids
        # the draft at position 0 was rejected: position 1 is for the next step
        following = emitted[1] if len(emitted) > 1 else int(drawn_behind(sampler, emitted[0])[draw])
        delivered.append((emitted[0], following))
    return np.array(delivered, dtype=np.int64).reshape(-1, 2)


def choose_many(
    sampler: Sampler,
    row: int,
    drafted: Tensor,
    odds: DraftOdds,
    place: int,
    members: NDArray[np.int64],
    rule: Rule,
) -> list[int]:
    """The rule at one place, for all members at once: rows of a chain don't see one another."""
    count = len(members)
    flips = torch.from_numpy(coins(place, "target")[members])
    choices = rule(
        sampler,
        TARGET[[row] * count + [AT_ROOT]],  # the last row has no drafted token
        drafted=drafted.repeat(count),
        odds=DraftOdds(odds.probabilities.repeat(count, 1), odds.target_ids),
        accept_coins=torch.from_numpy(coins(place, "accept")[members]),
        coins=torch.cat([flips, flips.new_zeros(1)]),
    )
    ids: list[int] = choices.ids.tolist()[:count]
    return ids


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    ("draft", "draft_ids"),
    [(TARGET, ALL), (OTHER, ALL), (OTHER, SOME)],
    ids=["same", "other", "reduced"],
)
def test_the_next_two_tokens_follow_the_target(
    sampler: Sampler, draft: Tensor, draft_ids: Tensor
) -> None:
    """Chi-square over fifty thousand pairs; the head equals the target, differs, or says less."""
    tokens = next_two(sampler, draft, draft_ids, choose_by_ratio)

    assert p_value(tokens, exact_pairs(sampler)) > LEAST_P


def accept_with_p(sampler: Sampler, logits: Tensor, **given: Tensor) -> Choices:
    """A broken rule: accepts with p instead of p / q."""
    q = given["odds"].over_targets(VOCAB).gather(1, given["drafted"][:, None])  # type: ignore[attr-defined]
    given["accept_coins"] = given["accept_coins"] / q.squeeze(1)
    return choose_by_ratio(sampler, logits, **given)  # type: ignore[arg-type]


def redraw_from_p(sampler: Sampler, logits: Tensor, **given: Tensor) -> Choices:
    """A broken rule: redraws a rejected token from p instead of what p has over q."""
    right = choose_by_ratio(sampler, logits, **given)  # type: ignore[arg-type]
    plain_ids = sampler.choose(logits, given["coins"]).ids
    drafted = torch.cat([given["drafted"], right.ids[-1:]])
    return Choices(torch.where(right.ids == drafted, right.ids, plain_ids), right.gaps)


def redraw_with_the_accept_coin(sampler: Sampler, logits: Tensor, **given: Tensor) -> Choices:
    """A broken rule: one coin for two questions."""
    coins = torch.cat([given["accept_coins"], given["coins"][-1:]])
    return choose_by_ratio(sampler, logits, **{**given, "coins": coins})  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", [accept_with_p, redraw_from_p, redraw_with_the_accept_coin])
def test_a_broken_rule_is_seen(rule: Rule) -> None:
    """The same test goes red where the rule is wrong."""
    tokens = next_two(Sampler(1.0), OTHER, ALL, rule)

    assert p_value(tokens, exact_pairs(Sampler(1.0))) < WRONG_P


def test_acceptance_is_what_p_and_q_share() -> None:
    """The share accepted is the sum of min(p, q), within five standard deviations."""
    sampler = Sampler(1.0)
    odds = sampler.probabilities(OTHER[:1])
    drafted = torch.from_numpy(draw_many(sampler, odds, 0, "draft"))

    choices = choose_by_ratio(
        sampler,
        TARGET[:1].expand(DRAWS + 1, -1),
        drafted=drafted,
        odds=DraftOdds(odds.expand(DRAWS, -1), ALL),
        accept_coins=torch.from_numpy(coins(0, "accept")),
        coins=torch.from_numpy(np.append(coins(0, "target"), 0.0)),
    )

    shared = float(torch.minimum(odds, sampler.probabilities(TARGET[:1])).sum())
    accepted = float((choices.ids[:-1] == drafted).double().mean())
    assert accepted == pytest.approx(
        shared, abs=FIVE_SIGMA * (shared * (1 - shared) / DRAWS) ** 0.5
    )


def test_a_head_that_is_the_target_is_always_accepted() -> None:
    """The ratio is 1, and the coin lies below it."""
    sampler = Sampler(0.8, top_p=0.9)
    odds = sampler.probabilities(TARGET[:1])
    drafted = torch.from_numpy(draw_many(sampler, odds, 0, "draft"))

    choices = choose_by_ratio(
        sampler,
        TARGET[:1].expand(DRAWS + 1, -1),
        drafted=drafted,
        odds=DraftOdds(odds.expand(DRAWS, -1), ALL),
        accept_coins=torch.from_numpy(coins(0, "accept")),
        coins=torch.from_numpy(np.append(coins(0, "target"), 0.0)),
    )

    assert torch.equal(choices.ids[:-1], drafted)


def test_the_gap_is_the_distance_to_the_other_answer() -> None:
    """A coin that lies on p / q is a near-tie, one far from it is not."""
    sampler = Sampler(1.0)
    odds = sampler.probabilities(OTHER[:1])
    p, q = sampler.probabilities(TARGET[:1])[0], odds[0]
    token = int(torch.argmax(q - p))
    edge = float(p[token] / q[token])

    def decide(flip: float) -> Choices:
        return choose_by_ratio(
            sampler,
            TARGET[:2],
            drafted=torch.tensor([token]),
            odds=DraftOdds(odds, ALL),
            accept_coins=torch.tensor([flip], dtype=torch.float64),
            coins=torch.tensor([0.5, 0.5], dtype=torch.float64),
        )

    assert decide(edge - 1e-9).ids[0] == token != decide(edge + 1e-9).ids[0]
    assert max(float(decide(edge + nudge).gaps[0]) for nudge in (-1e-9, 1e-9)) < 1e-7
    assert float(decide(0.0).gaps[0]) > 1e-2
