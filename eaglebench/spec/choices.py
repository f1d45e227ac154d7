"""Likeliest choices out of logits, with the gap that says how close the call was."""

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


def rank_best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` best of each row of `scores` [num_rows, num_columns], and the first left out.

    Returns:
        [num_rows, count + 1] scores, falling, and [num_rows, count] int64 columns of the best; of
        equal scores the lowest column comes first.
    """
    best, columns = torch.topk(scores, count + 1, dim=-1)
    if bool((best[:, count - 1] == best[:, count]).any()):
        # `topk` may keep any of those equal at the cut; sorting whole rows is slow, and rare
        best, columns = torch.sort(scores, dim=-1, descending=True, stable=True)
        return best[:, : count + 1], columns[:, :count]
    columns = torch.sort(columns[:, :count], dim=-1).values
    order = torch.sort(scores.gather(1, columns), dim=-1, descending=True, stable=True).indices
    return best, columns.gather(1, order)
