"""Drawing tokens: the right distribution, and the same draw whoever asks."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from eaglebench.spec.accept import accept_chosen
from eaglebench.spec.proposal import ROOT, Proposal
from eaglebench.spec.sampling import Purpose, Sampler, coin
from eaglebench.spec.tree import TreeGrowth
from tests import tiny_vocabulary as tiny

LOGITS = torch.tensor([[1.0, 0.5, -0.5, 2.0, 0.0, -3.0]])
DRAWS = 20_000
LEAST_P = 1e-4
"""A right sampler fails each chi-square test once in 10 000 keys; the keys here are fixed."""


@cache
def coins(count: int, key: str = "k") -> torch.Tensor:
    """Coins of many positions."""
    return torch.tensor([coin(key, position) for position in range(count)], dtype=torch.float64)


def test_coins_are_uniform_and_keyed() -> None:
    """Kolmogorov-Smirnov against the uniform distribution; another key is another sequence."""
    drawn = coins(DRAWS).numpy()

    assert stats.kstest(drawn, "uniform").pvalue > LEAST_P
    assert coin("a", 3) == coin("a", 3)
    assert len({coin("a", 3), coin("b", 3), coin("a", 4)}) == 3


def test_coins_of_one_position_know_nothing_of_each_other() -> None:
    """What is drafted, accepted and drawn at a position hangs on three independent coins."""
    purposes: tuple[Purpose, ...] = ("target", "draft", "accept")
    drawn = np.array([tiny.coins(0, purpose) for purpose in purposes])

    correlations = np.asarray(np.corrcoef(drawn))[np.triu_indices(3, 1)]

    for each in drawn:
        assert stats.kstest(each, "uniform").pvalue > LEAST_P
    # five standard deviations of a correlation of independent numbers
    assert np.abs(correlations).max() < 5 / tiny.DRAWS**0.5


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


@cache
def counts_of_draws() -> tuple[int, ...]:
    """How often each of the six tokens is drawn."""
    ids = Sampler(1.0).choose(LOGITS.expand(DRAWS, -1), coins(DRAWS)).ids.numpy()
    return tuple(np.bincount(ids, minlength=6).tolist())


@given(st.sets(st.integers(0, 5), min_size=1, max_size=4))
def test_a_tree_accepts_each_sibling_with_its_probability(siblings: set[int]) -> None:
    """What is accepted are the siblings' shares of a softmax, within five standard deviations."""
    nodes = tuple(sorted(siblings))
    proposal = Proposal(nodes, (0.0,) * len(nodes), (ROOT,) * len(nodes))

    accepted = Counter[tuple[int, ...]]()
    for token, count in enumerate(counts_of_draws()):
        accepted[accept_chosen(proposal, (token, *nodes)).path] += count

    weights = np.exp(LOGITS[0].double().numpy())
    for node, token in enumerate(nodes):
        share = weights[token] / weights.sum()
        spread = (share * (1 - share) / DRAWS) ** 0.5
        assert abs(accepted[node,] / DRAWS - share) < 5 * spread
    assert accepted.total() == DRAWS
    assert set(accepted) <= {(), *((node,) for node in range(len(nodes)))}


def grow_tree(draft: torch.Tensor, topk: int) -> Proposal:
    """A tree of two levels over the tiny vocabulary; top-k 1 is a chain."""
    ranked, order = torch.sort(torch.log_softmax(draft, -1), dim=-1, descending=True)
    tree = TreeGrowth(topk)
    for _ in range(2):
        rows = [tiny.BEHIND + tree.token_ids[c] for c in tree.frontier] or [tiny.AT_ROOT]
        ids, log_probs = order[rows, :topk].numpy(), ranked[rows, :topk].numpy()
        tree.grow(ids, log_probs, [0.0] * len(rows))
    return tree.prune(2 * topk)


@pytest.mark.parametrize("sampler", tiny.SAMPLERS)
@pytest.mark.parametrize("topk", [1, 2, 4])
@pytest.mark.parametrize("draft", [tiny.TARGET, tiny.OTHER], ids=["same", "other"])
def test_the_next_two_tokens_follow_the_target(
    sampler: Sampler, topk: int, draft: torch.Tensor
) -> None:
    """Chi-square over fifty thousand pairs, chains and trees, drafted well or badly."""
    proposal = grow_tree(draft, topk)
    chosen = [tiny.draw_many(sampler, sampler.probabilities(tiny.TARGET[:1]), 0)]
    for token, depth in zip(proposal.token_ids, proposal.depths()[1:], strict=True):
        behind = sampler.probabilities(tiny.TARGET[tiny.BEHIND + token :][:1])
        chosen.append(tiny.draw_many(sampler, behind, int(depth)))

    tokens = []
    for draw, choices in enumerate(np.stack(chosen, axis=1).tolist()):
        emitted = accept_chosen(proposal, choices).emitted_ids
        first = emitted[0]
        more = emitted[1] if len(emitted) > 1 else tiny.drawn_behind(sampler, first)[draw]
        tokens.append((first, int(more)))

    assert tiny.p_value(np.array(tokens), tiny.exact_pairs(sampler)) > tiny.LEAST_P


def test_the_gap_is_the_distance_to_the_next_token() -> None:
    """A coin on the edge of an interval is a near-tie."""
    sampler = Sampler(1.0)
    edge = float(sampler.probabilities(LOGITS)[0, 0])

    near = sampler.choose(LOGITS, torch.tensor([edge - 1e-9], dtype=torch.float64))
    far = sampler.choose(LOGITS, torch.tensor([edge / 2], dtype=torch.float64))

    assert near.ids.item() == far.ids.item() == 0
    assert near.gaps.item() < 1e-7 < far.gaps.item()
