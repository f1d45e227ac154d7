"""The draft's reduced vocabulary: `d2t` and `t2d`, and vocabularies that are padded.

`d2t` holds offsets: target id = draft id + d2t[draft id]. Some files hold absolute ids instead. The
reading counts whose ids are in range, differ, and are those that `t2d` marks; where both count, it
is offsets.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from eaglebench.errors import CheckpointError

MOST_PADDING = 512
"""Models round their vocabularies up to a multiple of this at most; small ones less."""
_SMALL_SHARE = 8


def is_padding(one: int, other: int) -> bool:
    """Whether two sizes can be one vocabulary that was padded to different lengths."""
    small, large = sorted((one, other))
    return large - small < MOST_PADDING and large - small <= small // _SMALL_SHARE


def target_id_table(
    d2t: Tensor | None, t2d: Tensor | None, *, draft_vocab_size: int, vocab_size: int
) -> tuple[Tensor, str | None]:
    """[draft_vocab_size] int64 target id of every draft id, and a warning if one is due.

    Raises:
        CheckpointError: the tables don't fit the vocabularies or each other.
    """
    draft_ids = torch.arange(draft_vocab_size)
    if d2t is None:
        _check_without_table(t2d, draft_vocab_size, vocab_size)
        return draft_ids, None
    if d2t.shape != (draft_vocab_size,):
        raise CheckpointError(
            f"d2t has shape {tuple(d2t.shape)}; expected ({draft_vocab_size},) as in lm_head"
        )
    table = _whole_numbers(d2t)
    as_offsets, as_ids = draft_ids + table, table
    are_ids = not any(_faults(as_ids, t2d, vocab_size))
    fault = next(_faults(as_offsets, t2d, vocab_size), None)
    if fault is not None and are_ids:
        return as_ids, "d2t holds absolute ids, not offsets; read as such"
    if fault is not None:
        raise CheckpointError(fault)
    are_first = torch.equal(as_offsets, draft_ids) and not is_padding(draft_vocab_size, vocab_size)
    if are_first and t2d is None:
        raise CheckpointError(
            f"d2t sends the head's {draft_vocab_size} ids to the target's first ones of {vocab_size}, "
            "as a table does that was never filled, and there is no t2d that would confirm it",
            hint="the mapping belongs to the head; export it again",
        )
    warning = None
    if are_first:  # hardly the most frequent ones, though t2d confirms it
        warning = f"the head proposes the target's first {draft_vocab_size} ids of {vocab_size}"
    return as_offsets, _OPEN if are_ids and not torch.equal(as_offsets, as_ids) else warning


def written_tables(target_ids: Tensor, vocab_size: int) -> dict[str, Tensor]:
    """`d2t` as offsets and `t2d` as marks of [draft_vocab_size] int64 target ids."""
    marked = torch.zeros(vocab_size, dtype=torch.bool)
    marked[target_ids] = True
    return {"d2t": target_ids - torch.arange(len(target_ids)), "t2d": marked}


_OPEN = (
    "d2t is read as offsets, which is usual, and would make sense as absolute ids, too; a t2d in the "
    "file would tell"
)


def _faults(target_ids: Tensor, t2d: Tensor | None, vocab_size: int) -> Iterator[str]:
    """Why `d2t` can't mean these ids; nothing where it can."""
    bad = torch.nonzero((target_ids < 0) | (target_ids >= vocab_size)).flatten()
    if len(bad):
        first = int(bad[0])
        yield (
            f"d2t sends draft id {first} to {int(target_ids[first])}, outside the target's "
            f"vocabulary of {vocab_size}"
        )
    if len(torch.unique(target_ids)) != len(target_ids):
        yield "d2t sends two draft ids to one target id"
    if t2d is None:
        return
    if t2d.dim() != 1:
        yield f"t2d has shape {tuple(t2d.shape)}; expected one mark for each target id"
    marked = torch.nonzero(t2d.to(torch.bool)).flatten()
    if not torch.equal(marked, torch.sort(target_ids).values):
        yield (
            f"t2d marks {len(marked)} target ids of {len(t2d)}, d2t names {len(target_ids)} of "
            f"{vocab_size}: the two tables don't agree"
        )


def _check_without_table(t2d: Tensor | None, draft_vocab_size: int, vocab_size: int) -> None:
    if t2d is not None:
        raise CheckpointError(
            "the head has a t2d and no d2t; what its draft ids stand for is not known"
        )
    if draft_vocab_size < vocab_size and not is_padding(draft_vocab_size, vocab_size):
        raise CheckpointError(
            f"the head proposes {draft_vocab_size} ids (draft_vocab_size), the target has "
            f"{vocab_size}, and no d2t says which ids they are",
            hint="the mapping belongs to the head; export it again with d2t",
        )
    if draft_vocab_size > vocab_size:
        raise CheckpointError(
            f"the draft has {draft_vocab_size} ids and no d2t, the target {vocab_size}"
        )


def _whole_numbers(d2t: Tensor) -> Tensor:
    whole = d2t.to(torch.int64)
    if d2t.is_floating_point() and not torch.equal(whole.to(d2t.dtype), d2t):
        raise CheckpointError("d2t holds fractions")
    return whole
