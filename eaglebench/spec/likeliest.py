"""Likeliest choices out of logits, with the gap that says how close the call was."""

from typing import NamedTuple

import torch
from torch import Tensor


class Choices(NamedTuple):
    """Greedy choices of some rows.

    Attributes:
        ids: [num_rows] int64; of equal logits the lowest id wins, here as everywhere.
        gaps: [num_rows] float64, largest minus second largest logit; NaN where no choice can be
            made, because a logit of the row is NaN or infinite.
    """

    ids: Tensor
    gaps: Tensor


def choose_greedy(logits: Tensor) -> Choices:
    """Largest logit of each row of `logits` [num_rows, vocab], and its lead over the next."""
    top = torch.topk(logits, 2, dim=-1).values.double()
    return flag_unusable(Choices(torch.argmax(logits, dim=-1), top[:, 0] - top[:, 1]), logits)


def flag_unusable(choices: Choices, logits: Tensor) -> Choices:
    """The same choices, with gap NaN in rows of `logits` that hold a NaN or an infinite number.

    The flag travels with the gaps, which are read anyway: no further wait for the device.
    """
    usable = torch.isfinite(logits).all(dim=-1)
    return Choices(choices.ids, torch.where(usable, choices.gaps, float("nan")))


def rank_best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` best of each row of `scores` [num_rows, num_columns], and the first left out.

    Returns:
        [num_rows, count + 1] scores, falling, and [num_rows, count] int64 columns of the best; of
        equal scores the lowest column comes first.
    """
    best, found = torch.topk(scores, count + 1, dim=-1)
    cut = best[:, count - 1 : count]
    # of those equal at the cut `topk` may take any; of columns counted down it takes the lowest
    from_left = torch.arange(scores.shape[-1], 0, -1, dtype=torch.int32, device=scores.device)
    tied = torch.topk((scores == cut) * from_left, count, dim=-1).indices
    is_above = best[:, :count] > cut
    rank = torch.arange(count, device=scores.device) - is_above.sum(dim=-1, keepdim=True)
    columns = torch.where(is_above, found[:, :count], tied.gather(1, rank.clamp(min=0)))
    columns = torch.sort(columns, dim=-1).values
    order = torch.sort(scores.gather(1, columns), dim=-1, descending=True, stable=True).indices
    return best, columns.gather(1, order)
