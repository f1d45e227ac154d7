"""Decoding of many conversations at once: every one owns a strip of the pool.

    slots   | 0 |  row 0: positions 0 .. length - 1  |  row 1: positions 0 .. length - 1  | ...
            dummy

With one new token a row and strips of one length, K and V of a layer are a view [rows, heads,
positions, width] that attention reads without a gather, however the conversations differ in length.
"""

import numpy as np
import torch
from torch import Tensor

from eaglebench.kv.pool import DUMMY_SLOTS, PlacedLayer
from eaglebench.model.attention import AttentionForm, LoopAttention, PagedAttention, attend_folded
from eaglebench.model.attention_layout import AttentionLayout, make_layout
from eaglebench.model.layout_row import LayoutRow, additive, causal
from eaglebench.model.target import Target


class GridAttention(PagedAttention):
    """One query a row, [num_rows, num_heads, head_dim], over the row's own strip."""

    def __init__(self, length: int, positions: Tensor) -> None:
        self._num_rows, self._length = len(positions), length
        self._positions = positions
        self._used = int(positions.max()) + 1
        self._biases: dict[int | None, Tensor] = {}

    def attend(
        self, query: Tensor, place: PlacedLayer, layout: AttentionLayout, form: AttentionForm
    ) -> Tensor:
        """See `PagedAttention`."""
        keys, values = (
            self._strips(each[place.layer]) for each in (place.pool.keys, place.pool.values)
        )
        num_rows, num_heads, width = query.shape
        num_kv_heads = keys.shape[1]
        folded = query.view(num_rows, num_kv_heads, num_heads // num_kv_heads, width)
        bias = self._bias(form.window, query.dtype)
        sinks = form.sinks
        if sinks is not None:
            sinks = sinks.view(1, num_kv_heads, -1, 1).expand(num_rows, -1, -1, -1)
        out = attend_folded(folded, keys, values, bias, form, sinks)
        return out.reshape(num_rows, num_heads, width)

    def _strips(self, pooled: Tensor) -> Tensor:
        """[num_rows, num_kv_heads, used positions, head_dim] view of a layer's K or V."""
        heads, _, width = pooled.shape
        strips = pooled[:, DUMMY_SLOTS:].view(heads, -1, self._length, width)
        return strips[:, : self._num_rows, : self._used].transpose(0, 1)

    def _bias(self, window: int | None, dtype: torch.dtype) -> Tensor:
        """[num_rows, 1, 1, used positions]: 0 where a row's query looks, -inf elsewhere."""
        if window not in self._biases:
            keys = torch.arange(self._used, device=self._positions.device)
            seen = causal(keys, self._positions[:, None], window)
            self._biases[window] = additive(seen, dtype)[:, None, None]
        return self._biases[window]


class DecodeGrid:
    """The KV of `num_rows` conversations of at most `length` tokens, all after one prefix."""

    def __init__(self, target: Target, num_rows: int, length: int, prefix: list[int]) -> None:
        self.num_rows, self.length, self.prefix_len = num_rows, length, len(prefix)
        self._target = target
        self._device = target.device
        self._prefix_row = num_rows
        self._pool = target.make_pool(DUMMY_SLOTS + (num_rows + 1) * length)
        self._compute_prefix(prefix)

    def start(self, row: int) -> None:
        """Begin a conversation anew: the prefix is copied, its tokens need not be fed."""
        first, mine = (DUMMY_SLOTS + each * self.length for each in (self._prefix_row, row))
        span = np.arange(self.prefix_len)
        self._pool.move(first + span, mine + span)

    def feed(self, token_ids: Tensor, positions: Tensor, logit_rows: Tensor) -> Tensor:
        """One token for every row: [n, vocab] logits of the `logit_rows` [n] int64.

        Tokens and the positions where they stand are [num_rows] int64.
        """
        attention = GridAttention(self.length, positions)
        rows = torch.arange(self.num_rows, device=self._device)
        layout = AttentionLayout(self._slots(rows, positions), (), None)
        return self._target.forward(
            token_ids, positions, layout, self._pool, logit_rows, attention=attention
        ).logits

    def _compute_prefix(self, prefix: list[int]) -> None:
        positions = torch.arange(len(prefix), device=self._device)
        slots = self._slots(self._prefix_row, positions)
        layout = make_layout(
            [LayoutRow(slots.cpu().numpy(), len(prefix))], device=self._device, backend="loop"
        )
        ids = torch.tensor(prefix, device=self._device)
        no_rows = positions[:0]
        self._target.forward(ids, positions, layout, self._pool, no_rows, attention=LoopAttention())

    def _slots(self, row: Tensor | int, positions: Tensor) -> Tensor:
        return DUMMY_SLOTS + row * self.length + positions
