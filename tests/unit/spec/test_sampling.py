"""Drawing tokens: the right distribution, and the same draw whoever asks."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from eaglebench.spec.accept import accept_greedy
from eaglebench.spec.proposal import ROOT, Proposal
from eaglebench.spec.sampling import Sampler, coin

LOGITS = torch.tensor([[1.0, 0.5, -0.5, 2.0, 0.0, -3.0]])
DRAWS = 20_000
LEAST_P = 1e-4
"""A right sampler fails each chi-square test once in 10 000 keys; the keys here are fixed."""


def coins(count: int, key: str = "k") -> torch.Tensor:
    """Coins of many positions."""
    return torch.tensor([coin(key, position) for position in range(count)], dtype=torch.float64)


def test_coins_are_uniform_and_keyed() -> None:
    """Kolmogorov-Smirnov against the uniform distribution; another key is another sequence."""
    drawn = coins(DRAWS).numpy()

    assert stats.kstest(drawn, "uniform").pvalue > LEAST_P
    assert coin("a", 3) == coin("a", 3)
    assert len({coin("a", 3), coin("b", 3), coin("a", 4)}) == 3


@pytest.mark.parametrize(
    "sampler",
    [
        Sampler(1.0),
        Sampler(0.5),
        Sampler(1.7, top_k=3),
        Sampler(1.0, top_p=0.7),
        Sampler(0.8, top_p=0.9, top_k=4),
    ],
)
def test_tokens_come_with_their_probability(sampler: Sampler) -> None:
    """Chi-square over twenty thousand draws; what is filtered out never comes."""
    expected = sampler.probabilities(LOGITS)[0].numpy()

    ids = sampler.choose(LOGITS.expand(DRAWS, -1), coins(DRAWS)).ids.numpy()

    counts = np.bincount(ids, minlength=6)
    possible = expected > 0
    assert counts[~possible].sum() == 0
    assert stats.chisquare(counts[possible], expected[possible] * DRAWS).pvalue > LEAST_P


def test_filters_keep_the_likeliest() -> None:
    """Top-k keeps so many; top-p keeps up to the token that reaches it."""
    plain = torch.softmax(LOGITS.double(), -1)[0]

    of_three = Sampler(1.0, top_k=3).probabilities(LOGITS)[0]
    nucleus = Sampler(1.0, top_p=0.5).probabilities(LOGITS)[0]

    assert (of_three > 0).tolist() == [True, True, False, True, False, False]
    assert of_three[3] / of_three[0] == pytest.approx(float(plain[3] / plain[0]))
    assert (nucleus > 0).tolist() == [False, False, False, True, False, False]


@given(st.sets(st.integers(0, 5), min_size=1, max_size=4))
def test_a_tree_accepts_each_sibling_with_its_probability(siblings: set[int]) -> None:
    """What no sibling holds is drawn as plain sampling would, whatever was drafted."""
    sampler = Sampler(1.0)
    nodes = tuple(sorted(siblings))
    proposal = Proposal(nodes, (0.0,) * len(nodes), (ROOT,) * len(nodes))
    ids = sampler.choose(LOGITS.expand(2_000, -1), coins(2_000)).ids.tolist()

    first = [accept_greedy(proposal, (token, *nodes)).emitted_ids[0] for token in ids]

    assert first == ids
    accepted = sum(bool(accept_greedy(proposal, (token, *nodes)).path) for token in ids)
    assert accepted == sum(token in siblings for token in ids)


def test_the_gap_is_the_distance_to_the_next_token() -> None:
    """A coin on the edge of an interval is a near-tie."""
    sampler = Sampler(1.0)
    edge = float(sampler.probabilities(LOGITS)[0, 0])

    near = sampler.choose(LOGITS, torch.tensor([edge - 1e-9], dtype=torch.float64))
    far = sampler.choose(LOGITS, torch.tensor([edge / 2], dtype=torch.float64))

    assert near.ids.item() == far.ids.item() == 0
    assert near.gaps.item() < 1e-7 < far.gaps.item()
