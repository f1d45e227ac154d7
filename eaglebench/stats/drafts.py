"""Verify steps in which two arms proposed other tokens from the same beginning.

More than what changes accepted counts: a wrong draft in place of one that would have been rejected
changes nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eaglebench.records.measured import MeasuredTurn
from eaglebench.stats.prefix import common_roots


@dataclass(frozen=True, slots=True)
class OtherDrafts:
    """How many steps have other drafts, of those that both arms began with the same tokens."""

    num_other: int
    num_common: int


def count_other_drafts(
    turns: Sequence[MeasuredTurn], others: Sequence[MeasuredTurn]
) -> OtherDrafts:
    """Compare measured turns of two arms of one cell and pass, step by step from equal roots."""
    by_key = {(turn.question_id, turn.turn): turn for turn in others}
    num_other = num_common = 0
    for turn in turns:
        other = by_key.get((turn.question_id, turn.turn))
        if other is None or not turn.is_measured:
            continue
        for _, mine, theirs in common_roots(turn, other):
            num_common += 1
            num_other += (mine.drafted_ids, mine.parents) != (theirs.drafted_ids, theirs.parents)
    return OtherDrafts(num_other, num_common)
