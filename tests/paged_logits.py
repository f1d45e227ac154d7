"""Logits of whole prompts by a target's own way: in a batch, in pieces, in shuffled slots."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import Target


def paged_logits(target: Target, prompts: Sequence[Tensor], pieces: Sequence[int]) -> list[Tensor]:
    """[num_tokens, vocab] of each prompt; the pieces of that many tokens go on until all are done."""
    sizes = [len(ids) for ids in prompts]
    order = np.random.default_rng(0).permutation(sum(sizes)).astype(np.int64) + 1
    slots = np.split(order, np.cumsum(sizes)[:-1])
    pool = target.make_pool(sum(sizes) + 1, fill=float("nan"))
    found: list[list[Tensor]] = [[] for _ in prompts]
    start = 0
    for size in pieces:
        spans = [(start, min(start + size, count)) for count in sizes]
        live = [n for n, (first, end) in enumerate(spans) if end > first]
        if not live:
            break
        rows = [LayoutRow(slots[n][: spans[n][1]], spans[n][1] - start) for n in live]
        layout = make_layout(rows, device=target.device, backend=target.attention_backend)
        ids = torch.cat([prompts[n][start : spans[n][1]] for n in live])
        positions = torch.cat([torch.arange(*spans[n]) for n in live])
        output = target.forward(ids, positions, layout, pool, torch.arange(len(ids)))
        parts = torch.split(output.logits, [row.num_queries for row in rows])
        for n, logits in zip(live, parts, strict=True):
            found[n].append(logits)
        start += size
    return [torch.cat(parts) for parts in found]
