"""Turns whose tokens part: what their common beginning says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eaglebench.records.measured import MeasuredTurn
from eaglebench.records.observation import VerifyStep


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonPrefix:
    """Verify steps that end before the first differing token, in both arms.

    Attributes:
        num_tokens: output tokens both share.
        emitted, verify_steps: of the candidate.
        other_emitted, other_verify_steps: of the other arm.
    """

    num_tokens: int
    emitted: int
    verify_steps: int
    other_emitted: int
    other_verify_steps: int


def common_prefix(turn: MeasuredTurn, other: MeasuredTurn) -> CommonPrefix:
    """Count steps of both turns that lie in front of the first difference."""
    pairs = zip(turn.output_token_ids, other.output_token_ids, strict=False)
    shorter = min(len(turn.output_token_ids), len(other.output_token_ids))
    shared = next((index for index, (a, b) in enumerate(pairs) if a != b), shorter)
    emitted, steps = _whole_steps(turn, shared)
    other_emitted, other_steps = _whole_steps(other, shared)
    return CommonPrefix(
        num_tokens=shared,
        emitted=emitted,
        verify_steps=steps,
        other_emitted=other_emitted,
        other_verify_steps=other_steps,
    )


def common_roots(
    turn: MeasuredTurn, other: MeasuredTurn
) -> Iterator[tuple[int, VerifyStep, VerifyStep]]:
    """Verify steps that begin with the same tokens in both turns, and their number in `turn`.

    What is drafted and chosen there follows from the same tokens, whatever was drafted before.
    """
    if turn.prompt_token_ids != other.prompt_token_ids:
        return
    theirs = {step.position: step for step in other.steps}
    for index, step in enumerate(turn.steps):
        same_root = theirs.get(step.position)
        if same_root is not None and _know_the_same(turn, other, step.position):
            yield index, step, same_root


@dataclass(frozen=True, slots=True)
class OtherDrafts:
    """How many steps have other drafts, of those that both arms began with the same tokens.

    More than what changes accepted counts: a wrong draft in place of one that would have been
    rejected changes nothing else.
    """

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


def _know_the_same(turn: MeasuredTurn, other: MeasuredTurn, position: int) -> bool:
    """Whether both turns have the same tokens up to the root, that one included."""
    num_outputs = position - len(turn.prompt_token_ids) + 1  # positions count from 0
    return turn.output_token_ids[:num_outputs] == other.output_token_ids[:num_outputs]


def _whole_steps(turn: MeasuredTurn, num_tokens: int) -> tuple[int, int]:
    """Tokens and number of the verify steps that end within the first `num_tokens` outputs."""
    end = turn.counters.prefill_sampled or 0  # where it is not told, no steps are either
    emitted = steps = 0
    for step in turn.steps:
        end += step.emitted
        if end > num_tokens:
            break
        emitted += step.emitted
        steps += 1
    return emitted, steps
