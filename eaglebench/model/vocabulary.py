"""The draft's reduced vocabulary: `d2t` and `t2d`.

`d2t` holds offsets: target id = draft id + d2t[draft id]. Some files hold absolute ids instead;
that is told apart by what the ids would be.
"""

import torch
from torch import Tensor

from eaglebench.errors import CheckpointError


def target_id_table(
    d2t: Tensor | None, t2d: Tensor | None, *, draft_vocab_size: int, vocab_size: int
) -> tuple[Tensor, str | None]:
    """[draft_vocab_size] int64 target id of every draft id, and a warning if one is due.

    Raises:
        CheckpointError: the tables don't fit the vocabularies or each other.
    """
    draft_ids = torch.arange(draft_vocab_size)
    if d2t is None:
        if draft_vocab_size > vocab_size:
            raise CheckpointError(
                f"the draft has {draft_vocab_size} ids and no d2t, the target {vocab_size}"
            )
        return draft_ids, None
    if d2t.shape != (draft_vocab_size,):
        raise CheckpointError(
            f"d2t has shape {tuple(d2t.shape)}; expected ({draft_vocab_size},) as in lm_head"
        )
    table = _whole_numbers(d2t)
    offsets = draft_ids + table
    warning = None
    if not _is_valid(offsets, vocab_size) and _is_valid(table, vocab_size):
        offsets, warning = table, "d2t holds absolute ids, not offsets; read as such"
    bad = torch.nonzero((offsets < 0) | (offsets >= vocab_size)).flatten()
    if len(bad):
        first = int(bad[0])
        raise CheckpointError(
            f"d2t sends draft id {first} to {int(offsets[first])}, outside the target's "
            f"vocabulary of {vocab_size}"
        )
    if len(torch.unique(offsets)) != len(offsets):
        raise CheckpointError("d2t sends two draft ids to one target id")
    _check_t2d(t2d, offsets, vocab_size)
    return offsets, warning


def _whole_numbers(d2t: Tensor) -> Tensor:
    whole = d2t.to(torch.int64)
    if d2t.is_floating_point() and not torch.equal(whole.to(d2t.dtype), d2t):
        raise CheckpointError("d2t holds fractions")
    return whole


def _is_valid(ids: Tensor, vocab_size: int) -> bool:
    in_range = bool(((ids >= 0) & (ids < vocab_size)).all())
    return in_range and bool((ids[1:] > ids[:-1]).all())


def _check_t2d(t2d: Tensor | None, target_ids: Tensor, vocab_size: int) -> None:
    if t2d is None:
        return
    marked = torch.nonzero(t2d.to(torch.bool)).flatten()
    if not torch.equal(marked, torch.sort(target_ids).values):
        raise CheckpointError(
            f"t2d marks {len(marked)} target ids of {len(t2d)}, d2t names {len(target_ids)} of "
            f"{vocab_size}: the two tables don't agree"
        )
