"""How much logits move when the same rows are computed in another matrix shape.

Rows of a matrix product depend on the shape they are computed in, so two arms that chunk or batch
differently can part at a near-tie. What is seen here, on the run's own prompts, is what the
near-tie thresholds are made from (`docs/decisions/0004-near-ties.md`).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from eaglebench.engine.models import Models
from eaglebench.kv.pool import KVPool
from eaglebench.model.attention_layout import AttentionLayout, make_layout
from eaglebench.model.layout_row import LayoutRow
from eaglebench.records.models import NumericNoise

SHAPES = (1, 2, 3, 5, 8, 16, 64)
"""Rows a forward, compared with the whole prompt at once."""
MAX_TOKENS = 192
"""Leading tokens of a prompt that are looked at."""
NUM_COMPARED = 24
"""Trailing tokens that are computed in each of `SHAPES`."""
CHUNKS = (5, 16, 64)
"""Rows a forward from the first token on: noise of the KV that later tokens look at adds up."""
QUANTILE = 0.99
"""The largest of all changes is an outlier that grows with the number of places looked at."""


def measure_noise(models: Models, prompts: Sequence[Sequence[int]]) -> NumericNoise:
    """How logits and leads change between whole and split forwards over `prompts`."""
    target, draft = NoiseOfSide(), NoiseOfSide()
    for prompt in prompts:
        ids = list(prompt[:MAX_TOKENS])
        whole = _Pass(models, ids).run([len(ids)])
        for sizes, num_compared in _splits(len(ids)):
            part = _Pass(models, ids).run(sizes)
            for side, one, other in zip((target, draft), whole, part, strict=True):
                if one is not None and other is not None:
                    side.add(one[-num_compared:], other[-num_compared:])
    return NumericNoise(
        target=target.largest,
        draft=draft.largest,
        target_lead=target.lead_noise(),
        draft_lead=draft.lead_noise(),
    )


class NoiseOfSide:
    """What was seen of the target's logits, or of the head's."""

    def __init__(self) -> None:
        self.largest = 0.0
        self.changes: list[Tensor] = []

    def add(self, one: Tensor, other: Tensor) -> None:
        """The same rows [num_rows, vocab] twice; rows that are no numbers are left out."""
        usable = torch.isfinite(one).all(dim=-1) & torch.isfinite(other).all(dim=-1)
        one, other = one[usable], other[usable]
        if not len(one):
            return
        # a prompt's first tokens are noisier than any answer
        tail, other_tail = one[-NUM_COMPARED:].double(), other[-NUM_COMPARED:].double()
        self.largest = max(self.largest, float((tail - other_tail).abs().max().item()))
        best = torch.topk(one, 2, dim=-1).indices
        self.changes.append((_lead(one, best) - _lead(other, best)).abs())

    def lead_noise(self) -> float | None:
        """The quantile over all rows and splits; None without a row."""
        if not self.changes:
            return None
        return float(torch.quantile(torch.cat(self.changes), QUANTILE).item())


def _lead(logits: Tensor, pair: Tensor) -> Tensor:
    """[num_rows] by how much the first token of each `pair` [num_rows, 2] leads the second."""
    both = logits.gather(1, pair).double()
    return both[:, 0] - both[:, 1]


def _splits(total: int) -> Iterator[tuple[list[int], int]]:
    """Rows of each forward, and how many trailing rows are compared, in every way looked at."""
    head = max(0, total - NUM_COMPARED)
    for rows in SHAPES:
        yield ([head] if head else []) + _pieces(total - head, rows), total - head
    for rows in CHUNKS:
        yield _pieces(total, rows), total


def _pieces(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]


class _Pass:
    """One pass over the tokens of a prompt in pieces, target and head."""

    def __init__(self, models: Models, ids: Sequence[int]) -> None:
        self.models = models
        self.ids = torch.tensor(list(ids), dtype=torch.int64, device=models.device)
        self.target_pool = models.target.make_pool(len(ids))
        self.draft_pool: KVPool | None = models.head.make_pool(len(ids)) if models.head else None

    def run(self, sizes: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """Logits of all tokens: [num_tokens, vocab] and [num_tokens - 1, draft_vocab]."""
        target_logits, draft_logits = [], []
        start = 0
        for size in sizes:
            target, draft = self._piece(start, start + size)
            target_logits.append(target)
            if draft is not None:
                draft_logits.append(draft)
            start += size
        return torch.cat(target_logits), torch.cat(draft_logits) if draft_logits else None

    def _piece(self, start: int, end: int) -> tuple[Tensor, Tensor | None]:
        head = self.models.head
        device = self.models.device
        positions = torch.arange(start, end, device=device)
        output = self.models.target.forward(
            self.ids[start:end],
            positions,
            self._layout(start, end, self.models.target.attention_backend),
            self.target_pool,
            torch.arange(end - start, device=device),
            aux_layer_ids=head.aux_layer_ids if head else (),
        )
        settled = min(end, len(self.ids) - 1)  # the last token has no successor
        if head is None or self.draft_pool is None or output.aux is None or settled <= start:
            return output.logits, None
        hidden = head.forward(
            self.ids[start + 1 : settled + 1],
            head.fuse(output.aux[: settled - start]),
            positions[: settled - start],
            self._layout(start, settled, head.attention_backend),
            self.draft_pool,
        )
        return output.logits, head.logits(hidden)

    def _layout(self, start: int, end: int, backend: str) -> AttentionLayout:
        """Tokens [start, end) behind all in front of them, in slots of their own numbers."""
        row = LayoutRow(np.arange(end, dtype=np.int64), end - start)
        return make_layout([row], device=self.models.device, backend=backend)
