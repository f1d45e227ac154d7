"""Verify steps in which two arms proposed other tokens from the same beginning.

More than what changes accepted counts: a wrong draft in place of one that would have been rejected
changes nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eaglebench.contracts.measured import MeasuredTurn


@dataclass(frozen=True, slots=True)
class OtherDrafts:
    """How many steps have other drafts, of those that both arms began with the same tokens."""

    num_other: int
    num_common: int


def count_other_drafts(
    turns: Sequence[MeasuredTurn], others: Sequence[MeasuredTurn]
) -> OtherDrafts:
    """Compare measured turns of two arms of one cell and round, step by step from equal roots."""
    by_key = {(turn.question_id, turn.turn): turn for turn in others}
    num_other = num_common = 0
    for turn in turns:
        other = by_key.get((turn.question_id, turn.turn))
        if other is None or not turn.is_measured or turn.prompt_token_ids != other.prompt_token_ids:
            continue
        theirs = {step.position: step for step in other.steps}
        for step in turn.steps:
            same_root = theirs.get(step.position)
            if same_root is None or not _know_the_same(turn, other, step.position):
                continue
            num_common += 1
            mine = (step.drafted_ids, step.parents)
            num_other += mine != (same_root.drafted_ids, same_root.parents)
    return OtherDrafts(num_other, num_common)


def _know_the_same(turn: MeasuredTurn, other: MeasuredTurn, position: int) -> bool:
    """Whether both turns have the same tokens up to the root, that one included."""
    num_outputs = position - len(turn.prompt_token_ids) + 1  # positions count from 0
    return turn.output_token_ids[:num_outputs] == other.output_token_ids[:num_outputs]
