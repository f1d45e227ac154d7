"""Greedy choices out of logits, with the gap that says how close the call was."""

from typing import NamedTuple

import torch
from torch import Tensor


class Choices(NamedTuple):
    """Greedy choices of some rows.

    Attributes:
        ids: [num_rows] int64; of equal logits the lowest id wins, here as everywhere.
        gaps: [num_rows] float64, largest minus second largest logit.
    """

    ids: Tensor
    gaps: Tensor


def choose_greedy(logits: Tensor) -> Choices:
    """Largest logit of each row of `logits` [num_rows, vocab], and its lead over the next."""
    top = torch.topk(logits, 2, dim=-1).values.double()
    return Choices(torch.argmax(logits, dim=-1), top[:, 0] - top[:, 1])
