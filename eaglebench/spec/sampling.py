"""Sampling that speculation can't change: one coin a position decides the target's token.

The target's distribution after temperature, top-k and top-p is laid out in the order of token ids, and
a coin in [0, 1) picks the token whose interval it falls into:

    ids        0        1    2          3
    |----------|--------|----|----------|        u = 0.47 falls into token 1
    0                  ^u               1

A drafted node is accepted if it holds that token. Siblings differ, so they cover disjoint intervals and
each is accepted with exactly its probability; what no sibling covers is what plain sampling would
have drawn. The coin depends on the position and not on the draft, the batch or the cache: with and
without speculation the same tokens come out (Leviathan et al. 2023, arXiv:2211.17192, with the draft
as a point mass). Rules that look at the drafts are in `rejection.py` and `thresholds.py`.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import torch
from torch import Tensor

from eaglebench.spec.likeliest import Choices

_COIN_BITS = 53
"""Bits of a float64's mantissa."""
STEEPEST = 4.0
"""A logit moved by d moves a probability by at most d / (4 * temperature)."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """How the target's token is drawn.

    Attributes:
        temperature: above 0.
        top_p: smallest set of likeliest tokens with so much probability; 1 keeps all.
        top_k: so many likeliest tokens; 0 keeps all.
    """

    temperature: float
    top_p: float = 1.0
    top_k: int = 0

    def probabilities(self, logits: Tensor) -> Tensor:
        """[num_rows, vocab] float64: temperature first, then top-k, then top-p, renormalised."""
        scaled = logits.double() / self.temperature
        if 0 < self.top_k < scaled.shape[-1]:
            least = torch.topk(scaled, self.top_k, dim=-1).values[:, -1:]
            scaled = scaled.masked_fill(scaled < least, float("-inf"))
        probabilities = torch.softmax(scaled, dim=-1)
        if self.top_p < 1:
            probabilities = _nucleus(probabilities, self.top_p)
        return probabilities

    def choose(self, logits: Tensor, coins: Tensor) -> Choices:
        """The token each row's coin falls on.

        Args:
            logits: [num_rows, vocab].
            coins: [num_rows] float64 in [0, 1).

        Returns:
            Ids, and how far the coin lies from the edge of its interval, in units of a logit.
        """
        return self.draw(self.probabilities(logits), coins)

    def draw(self, weights: Tensor, coins: Tensor) -> Choices:
        """The same from probabilities, or from anything in proportion to them.

        A token of weight 0 is never drawn.
        """
        upper = torch.cumsum(weights, dim=-1)
        upper = upper / upper[:, -1:]  # rounding must not leave a coin without a token
        ids = torch.searchsorted(upper, coins[:, None], right=True).squeeze(1)
        ids = ids.clamp(max=upper.shape[-1] - 1)
        above = upper.gather(1, ids[:, None]).squeeze(1)
        below = torch.where(
            ids > 0, upper.gather(1, (ids - 1).clamp(min=0)[:, None]).squeeze(1), 0.0
        )
        edge = torch.minimum(above - coins, coins - below)
        return Choices(ids, edge * STEEPEST * self.temperature)


Purpose = Literal["target", "draft", "accept"]
"""What a coin decides: the target's token, a drafted one, or whether that one is accepted."""


def coin(key: str, position: int, purpose: Purpose = "target") -> float:
    """A number in [0, 1) that depends on the key, the position of the token it decides, and on what.

    The key names seed, question and turn, so arms, batches and drafts share their coins. At a
    position only one node lies on the way that is walked, so the position stands for the node. A
    draft that was thrown away is drawn anew with the same coin: nothing that was delivered has
    looked at it.
    """
    name = f"{key}/{position}" if purpose == "target" else f"{key}/{position}/{purpose}"
    digest = sha256(name.encode()).digest()
    return float(int.from_bytes(digest[:8], "big") >> (64 - _COIN_BITS)) / 2.0**_COIN_BITS


def _nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """Keep the likeliest tokens up to and including the one that reaches `top_p`."""
    ranked, order = torch.sort(probabilities, dim=-1, descending=True, stable=True)
    before = torch.cumsum(ranked, dim=-1) - ranked
    kept = torch.where(before < top_p, ranked, 0.0)
    filtered = torch.zeros_like(probabilities).scatter(1, order, kept)
    return filtered / filtered.sum(dim=-1, keepdim=True)
