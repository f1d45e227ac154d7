"""Acceptance thresholds: SGLang's rule, lossless at 1 and lossy below."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from eaglebench.spec.accept import accept_greedy
from eaglebench.spec.proposal import ROOT, Proposal, chain
from eaglebench.spec.sampling import Sampler
from eaglebench.spec.thresholds import Thresholds, choose_leniently
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
            proposal,
            thresholds,
            accept_coins=[float(coins(place, "accept")[draw]) for place in places],
            coins=torch.tensor(np.array([coins(place, "target")[draw] for place in places])),
        )
        emitted = accept_greedy(proposal, choices.ids.tolist()).emitted_ids
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
        proposal,
        thresholds,
        accept_coins=[coin, 0.0, 0.0],
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
        proposal,
        Thresholds(1e-6, 1e-6),
        accept_coins=[0.0, 0.0, 0.0],
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
            proposal,
            Thresholds(single, 1.0),
            accept_coins=[coin, 0.0, 0.0],
            coins=torch.full((3,), 0.4, dtype=torch.float64),
        )
        return float(choices.gaps[0])

    assert max(gap(0.3 - 1e-9), gap(0.3 + 1e-9), gap(0.99, 0.5 + 1e-9)) < 1e-7
    assert min(gap(0.1), gap(0.5), gap(0.99, 0.6)) > 1e-2
