"""The target's choices for a batch: greedy rows and rows whose tokens are drawn."""

import numpy as np
import torch
from torch import Tensor

from eaglebench.contracts.generation import Sampling
from eaglebench.engine.batch import Batch, num_logits, row_positions
from eaglebench.spec.choices import Choices, choose_greedy
from eaglebench.spec.sampling import Sampler, coin

_NEXT = 1
"""Logits at a position decide the token at the next one."""


def choose(batch: Batch, logits: Tensor) -> Choices:
    """One token for each row of `logits` [num_logits, vocab], in the batch's order."""
    if all(row.request.request.sampling is None for row in batch.rows):
        return choose_greedy(logits)
    ids, gaps = [], []
    for row, start in zip(batch.rows, batch.logit_starts, strict=True):
        count = num_logits(row, wants_seam_guess=batch.wants_seam_guess)
        mine = logits[start : start + count]
        sampling = row.request.request.sampling
        if not count:
            continue
        if sampling is None:
            chosen = choose_greedy(mine)
        else:
            positions = row_positions(row)[-count:] + _NEXT
            coins = [coin(sampling.coin_key, int(position)) for position in positions]
            chosen = make_sampler(sampling).choose(
                mine, torch.from_numpy(np.array(coins)).to(mine.device)
            )
        ids.append(chosen.ids)
        gaps.append(chosen.gaps)
    return Choices(torch.cat(ids), torch.cat(gaps))


def make_sampler(sampling: Sampling) -> Sampler:
    """The sampler of a request."""
    return Sampler(sampling.temperature, sampling.top_p, sampling.top_k)
