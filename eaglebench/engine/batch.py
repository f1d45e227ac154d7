"""The flattened inputs of one target forward: all rows of a step behind one another."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.engine.plan import PrefillRow, Row, VerifyRow
from eaglebench.kv.window import WindowSlots, slots_in_front
from eaglebench.model.attention_layout import AttentionLayout, make_layout
from eaglebench.model.layout_row import LayoutRow, Tree, table_row, upload


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One forward.

    Attributes:
        rows: rows in batch order.
        starts: where each row's tokens begin in the flattened batch.
        token_ids: [num_tokens] int64.
        positions: [num_tokens] int64.
        layout: which slots are written and attended to.
        logit_rows: [num_logits] int64, batch rows whose logits are needed.
        logit_starts: where each row's logits begin; rows without logits take up none.
        written: slots each row writes.
        wants_seam_guess: whether logits at chunk seams are among them.
    """

    rows: tuple[Row, ...]
    starts: tuple[int, ...]
    token_ids: Tensor
    positions: Tensor
    layout: AttentionLayout
    logit_rows: Tensor
    logit_starts: tuple[int, ...]
    written: tuple[NDArray[np.int64], ...]
    wants_seam_guess: bool


def row_tokens(row: Row) -> NDArray[np.int32]:
    """Tokens a row computes."""
    request = row.request
    if isinstance(row, PrefillRow):
        return request.known_tokens[row.start : row.end]
    drafted = np.asarray(request.proposal.token_ids, dtype=np.int32)
    return np.concatenate([request.known_tokens[row.start :], drafted])


def num_logits(row: Row, *, wants_seam_guess: bool) -> int:
    """Trailing tokens of a row whose logits are needed."""
    if isinstance(row, VerifyRow):
        return row.num_tokens
    return 1 if row.samples or (wants_seam_guess and not row.completes) else 0


@dataclass(frozen=True, slots=True)
class WindowView:
    """What window layers see of a batch: the last `window` positions, in slots of their own pool."""

    window: int
    slots: WindowSlots

    def context(self, row: Row) -> NDArray[np.int64]:
        """Window slots of a row's tokens and of the positions its first token looks back on."""
        start = max(0, row.start - slots_in_front(self.window))
        return self.slots(row.request.held.slots(start, row.end))


def assemble(
    rows: Sequence[Row],
    *,
    device: torch.device,
    backend: str,
    wants_seam_guess: bool,
    window: WindowView | None = None,
) -> Batch:
    """Flatten the rows of a step."""
    lengths = [row.num_tokens for row in rows]
    ends = np.cumsum(lengths)
    wanted = [num_logits(row, wants_seam_guess=wants_seam_guess) for row in rows]
    logit_rows = [np.arange(end - count, end) for end, count in zip(ends, wanted, strict=True)]
    logit_ends = np.cumsum(wanted)
    tables = [row.request.held for row in rows]
    layout = make_layout(
        [
            table_row(table, row.end, row.num_tokens, _tree(row))
            for row, table in zip(rows, tables, strict=True)
        ],
        device=device,
        backend=backend,
    )
    if window is not None:
        layout.window = make_layout(
            [LayoutRow(window.context(row), row.num_tokens, _tree(row)) for row in rows],
            device=device,
            backend=backend,
        )
    token_ids, positions, wanted_rows = upload(
        [
            np.concatenate([row_tokens(row).astype(np.int64) for row in rows]),
            np.concatenate([row_positions(row) for row in rows]),
            np.concatenate(logit_rows),
        ],
        device,
    )
    return Batch(
        rows=tuple(rows),
        starts=tuple((ends - lengths).tolist()),
        token_ids=token_ids,
        positions=positions,
        layout=layout,
        logit_rows=wanted_rows,
        logit_starts=tuple((logit_ends - wanted).tolist()),
        written=tuple(
            table.slots(row.start, row.end) for row, table in zip(rows, tables, strict=True)
        ),
        wants_seam_guess=wants_seam_guess,
    )


def _tree(row: Row) -> Tree | None:
    """The tree among a row's tokens, whose nodes see their ancestors only; None is a run."""
    if isinstance(row, PrefillRow) or row.request.proposal.is_chain:
        return None
    proposal = row.request.proposal
    return Tree(proposal.ancestry(), proposal.depths())


def row_positions(row: Row) -> NDArray[np.int64]:
    """Positions of a row's tokens; siblings in a tree share one."""
    if isinstance(row, PrefillRow):
        return np.arange(row.start, row.end)
    return row.start + row.request.proposal.depths()
