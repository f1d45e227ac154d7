"""Five tokens whose distribution depends on the token before: an exact oracle for drawn pairs."""

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from eaglebench.spec.sampling import Purpose, Sampler, coin

VOCAB, DRAWS = 5, 50_000
LEAST_P = 1e-4
"""A right rule fails a chi-square test once in 10 000 sets of keys, and one of fifty tests once in
200. The keys are fixed, so what passes goes on passing."""
WRONG_P = 1e-12
"""A broken rule is told from a right one by at least this."""
LEAST_EXPECTED = 5
"""Chi-square wants so many in a class; rarer pairs are counted together."""
AT_ROOT, BEHIND = 0, 1
"""Rows of logits: behind the root, and behind token t at `BEHIND + t`."""

SAMPLERS = (
    Sampler(1.0),
    Sampler(0.7),
    Sampler(1.0, top_p=0.9),
    Sampler(1.0, top_k=3),
    Sampler(0.7, top_p=0.9, top_k=4),
)


def make_logits(seed: int) -> Tensor:
    """[1 + VOCAB, VOCAB] logits behind the root and behind each token."""
    generator = torch.Generator().manual_seed(seed)
    return 1.5 * torch.randn((BEHIND + VOCAB, VOCAB), generator=generator, dtype=torch.float64)


TARGET, OTHER = make_logits(1), make_logits(2)


@cache
def coins(position: int, purpose: Purpose) -> NDArray[np.float64]:
    """[DRAWS] the coin of one position in every draw; each draw has a key of its own."""
    return np.array([coin(f"draw-{n}", position, purpose) for n in range(DRAWS)])


def draw_many(
    sampler: Sampler, odds: Tensor, position: int, purpose: Purpose = "target"
) -> NDArray[np.int64]:
    """[DRAWS] every draw's token from `odds` [1, num_tokens]."""
    flips = torch.from_numpy(coins(position, purpose))
    drawn: NDArray[np.int64] = sampler.draw(odds.expand(DRAWS, -1), flips).ids.numpy()
    return drawn


@cache
def drawn_behind(sampler: Sampler, token: int) -> NDArray[np.int64]:
    """[DRAWS] what plain sampling draws at position 1 behind a token."""
    row = BEHIND + token
    return draw_many(sampler, sampler.probabilities(TARGET[row : row + 1]), 1)


def exact_pairs(sampler: Sampler) -> NDArray[np.float64]:
    """[VOCAB, VOCAB] probability of every pair of next tokens."""
    p = sampler.probabilities(TARGET).numpy()
    pairs: NDArray[np.float64] = p[AT_ROOT][:, None] * p[BEHIND:]
    return pairs


def p_value(tokens: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    """Chi-square of drawn tuples [num_draws, n] against exact probabilities, an axis a place.

    0 where something impossible was drawn.
    """
    counts = np.zeros_like(expected)
    np.add.at(counts, tuple(tokens.T), 1)
    if counts[expected == 0].any():
        return 0.0
    wanted = expected * len(tokens)
    frequent = wanted >= LEAST_EXPECTED
    rare = ~frequent
    observed = np.append(counts[frequent], counts[rare].sum())
    wanted = np.append(wanted[frequent], wanted[rare].sum())
    kept = wanted > 0
    return float(stats.chisquare(observed[kept], wanted[kept]).pvalue)
