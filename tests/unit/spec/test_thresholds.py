"""Acceptance thresholds: SGLang's rule, lossless at 1 and lossy below."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.spec.accept import accept_chosen
from eaglebench.spec.proposal import ROOT, Proposal, chain
from eaglebench.spec.sampling import STEEPEST, Sampler
from eaglebench.spec.thresholds import Thresholds, child_tokens, choose_leniently
from tests.tiny_vocabulary import (
    AT_ROOT,
    BEHIND,
    LEAST_P,
    TARGET,
    WRONG_P,
    coins,
    drawn_behind,
    exact_pairs,
    p_value,
)

LENIENT_DRAWS = 2_000
CHAIN = chain([3, 2], [0.0, 0.0])
TREE = Proposal((3, 0, 2, 1), (0.0,) * 4, (ROOT, ROOT, 0, 0))
"""Two children of the root, two of the first of them."""
SAMPLER = Sampler(1.0)
STRICT = Thresholds(1.0, 1.0)


def draw_pairs(thresholds: Thresholds, proposal: Proposal) -> NDArray[np.int64]:
    """[LENIENT_DRAWS, 2]: tokens of positions 0 and 1, a proposal verified by thresholds."""
    places = proposal.depths().tolist()
    rows = [AT_ROOT, *(BEHIND + token for token in proposal.token_ids)]
    delivered = []
    for draw in range(LENIENT_DRAWS):
        choices = choose_leniently(
            SAMPLER,
            TARGET[rows],
            torch.from_numpy(child_tokens([proposal])),
            thresholds,
            accept_coins=torch.tensor(np.array([coins(place, "accept")[draw] for place in places])),
            coins=torch.tensor(np.array([coins(place, "target")[draw] for place in places])),
        )
        emitted = accept_chosen(proposal, choices.ids.tolist()).emitted_ids
        first = emitted[0]
        second = emitted[1] if len(emitted) > 1 else int(drawn_behind(SAMPLER, first)[draw])
        delivered.append((first, second))
    return np.array(delivered, dtype=np.int64)


@pytest.mark.parametrize("proposal", [CHAIN, TREE], ids=["chain", "tree"])
def test_thresholds_of_one_are_lossless(proposal: Proposal) -> None:
    """Chi-square over two thousand pairs: siblings in order draw the target's distribution, too."""
    tokens = draw_pairs(STRICT, proposal)

    assert p_value(tokens, exact_pairs(SAMPLER)) > LEAST_P


@pytest.mark.parametrize("thresholds", [Thresholds(0.05, 1.0), Thresholds(1.0, 0.5)])
def test_thresholds_below_one_are_lossy(thresholds: Thresholds) -> None:
    """Drafts come out more often than the target says them, and chi-square sees it."""
    tokens = draw_pairs(thresholds, TREE)

    assert p_value(tokens, exact_pairs(SAMPLER)) < WRONG_P
    said = float(exact_pairs(SAMPLER)[[3, 0]].sum())
    assert float(np.isin(tokens[:, 0], [3, 0]).mean()) > said + 0.05


@pytest.mark.parametrize(
    ("thresholds", "coin", "token"),
    [
        (STRICT, 0.29, 1),
        (STRICT, 0.31, 0),
        (STRICT, 0.81, 2),
        (Thresholds(1.0, 0.5), 0.59, 1),
        (Thresholds(1.0, 0.5), 0.99, 0),
        (Thresholds(0.29, 1.0), 0.99, 1),
        (Thresholds(0.4, 1.0), 0.99, 0),
        (Thresholds(0.6, 1.0), 0.99, 2),
    ],
)
def test_children_are_tried_in_order(thresholds: Thresholds, coin: float, token: int) -> None:
    """Children 1 and 0 of probabilities .3 and .5, then the one token that is left.

    Accepted below 0.3 / threshold_acc, then below 0.8 / threshold_acc, or from threshold_single on.
    """
    proposal = Proposal((1, 0), (0.0, 0.0), (ROOT, ROOT))
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)).expand(3, -1)

    choices = choose_leniently(
        SAMPLER,
        logits,
        torch.from_numpy(child_tokens([proposal])),
        thresholds,
        accept_coins=torch.tensor([coin, 0.0, 0.0], dtype=torch.float64),
        coins=torch.tensor([0.4, 0.0, 0.0], dtype=torch.float64),
    )

    assert choices.ids[0] == token


def test_what_the_target_never_says_is_not_accepted() -> None:
    """A child that top-k cuts away has probability 0, which no threshold helps."""
    proposal = Proposal((2, 1), (0.0, 0.0), (ROOT, ROOT))
    logits = torch.tensor([[3.0, 2.0, 1.0]], dtype=torch.float64).expand(3, -1)

    choices = choose_leniently(
        Sampler(1.0, top_k=2),
        logits,
        torch.from_numpy(child_tokens([proposal])),
        Thresholds(1e-6, 1e-6),
        accept_coins=torch.zeros(3, dtype=torch.float64),
        coins=torch.zeros(3, dtype=torch.float64),
    )

    assert choices.ids[0] == 1


def test_the_gap_is_the_distance_to_the_other_answer() -> None:
    """A coin on the edge of a child's share is a near-tie; so is a p that equals the threshold."""
    proposal = Proposal((1, 0), (0.0, 0.0), (ROOT, ROOT))
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)).expand(3, -1)

    def gap(coin: float, single: float = 1.0) -> float:
        choices = choose_leniently(
            SAMPLER,
            logits,
            torch.from_numpy(child_tokens([proposal])),
            Thresholds(single, 1.0),
            accept_coins=torch.tensor([coin, 0.0, 0.0], dtype=torch.float64),
            coins=torch.full((3,), 0.4, dtype=torch.float64),
        )
        return float(choices.gaps[0])

    assert max(gap(0.3 - 1e-9), gap(0.3 + 1e-9), gap(0.99, 0.5 + 1e-9)) < 1e-7
    assert min(gap(0.1), gap(0.5), gap(0.99, 0.6)) > 1e-2


def choose_one_by_one(
    p: Tensor, proposal: Proposal, thresholds: Thresholds, accept_coins: Tensor, drawn: Tensor
) -> list[tuple[int, float]]:
    """The rule as it is told: token and margin behind every node, a margin of 0 where it is drawn."""
    chosen = []
    for node in range(ROOT, len(proposal.token_ids)):
        row, summed, margin = node + 1, 0.0, float("inf")
        token = int(drawn[row])
        for child in proposal.children(node):
            probability = float(p[row, proposal.token_ids[child]])
            summed += probability
            by_sum = summed - float(accept_coins[row]) * thresholds.acc
            by_itself = probability - thresholds.single
            if probability > 0 and (by_sum > 0 or by_itself >= 0):
                token, margin = proposal.token_ids[child], min(margin, max(by_sum, by_itself))
                break
            margin = min(margin, abs(by_sum), abs(by_itself))
        chosen.append((token, margin))
    return chosen


@pytest.mark.parametrize("sampler", [Sampler(1.0), Sampler(0.7, top_k=4), Sampler(1.3, top_p=0.8)])
@pytest.mark.parametrize(
    "thresholds", [STRICT, Thresholds(0.3, 1.0), Thresholds(1.0, 0.4), Thresholds(0.2, 0.6)]
)
def test_many_proposals_at_once_are_one_after_another(
    sampler: Sampler, thresholds: Thresholds
) -> None:
    """Trees of unlike sizes, chains and nothing at all, against the rule node by node."""
    values = np.random.default_rng(7)
    proposals = [make_proposal(values, num_nodes) for num_nodes in (0, 9, 1, 4, 30, 2)]
    table = torch.from_numpy(child_tokens(proposals))
    logits = torch.from_numpy(2 * values.standard_normal((len(table), 12)))
    accept_coins, coins = (torch.from_numpy(values.random(len(table))) for _ in range(2))

    choices = choose_leniently(
        sampler, logits, table, thresholds, accept_coins=accept_coins, coins=coins
    )

    p = sampler.probabilities(logits)
    others = p.clone()
    for row, tokens in enumerate(table.tolist()):
        others[row, [token for token in tokens if token >= 0]] = 0.0
    drawn = sampler.draw(torch.where(others.sum(-1, keepdim=True) > 0, others, p), coins)
    start, accepted = 0, 0
    for proposal in proposals:
        end = start + 1 + len(proposal.token_ids)
        expected = choose_one_by_one(
            p[start:end], proposal, thresholds, accept_coins[start:end], drawn.ids[start:end]
        )
        assert choices.ids[start:end].tolist() == [token for token, _ in expected]
        for row, (token, margin) in enumerate(expected, start=start):
            gap = margin * STEEPEST * sampler.temperature
            if token not in table[row].tolist():
                gap = min(gap, float(drawn.gaps[row] * others[row].sum()))
            accepted += token in table[row].tolist()
            assert float(choices.gaps[row]) == pytest.approx(gap, abs=1e-12)
        start = end
    assert 0 < accepted < len(table)


def make_proposal(values: np.random.Generator, num_nodes: int) -> Proposal:
    """Random parents; siblings hold different tokens."""
    parents = [int(values.integers(ROOT, node)) if node else ROOT for node in range(num_nodes)]
    unused = {parent: iter(values.permutation(12).tolist()) for parent in {*parents}}
    tokens = tuple(next(unused[parent]) for parent in parents)
    return Proposal(tokens, (0.0,) * num_nodes, tuple(parents))
