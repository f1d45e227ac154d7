"""Pooled counts, and what is made from steps; a ratio without a denominator is None."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import TypeVar

from eaglebench.records.counters import Counters, share
from eaglebench.records.measured import MeasuredBlock, MeasuredTurn
from eaglebench.records.observation import VerifyStep

T = TypeVar("T", MeasuredTurn, MeasuredBlock)

SHORT_CONTEXT = 256
"""Tokens of the shortest class of contexts."""


def answered(turns: Iterable[MeasuredTurn]) -> list[MeasuredTurn]:
    """Turns that ran and are measured."""
    return [turn for turn in turns if turn.is_measured and turn.error is None]


def by_arm(records: Iterable[T]) -> dict[tuple[str, str], list[T]]:
    """What each cell and arm recorded, in order."""
    grouped: dict[tuple[str, str], list[T]] = {}
    for record in records:
        grouped.setdefault((record.cell_id, record.arm), []).append(record)
    return grouped


def pool(turns: Iterable[MeasuredTurn]) -> Counters:
    """Sum the counts of turns that ran and are measured."""
    return Counters.total(turn.counters for turn in answered(turns))


def accepted_at(turns: Sequence[MeasuredTurn]) -> tuple[int, ...]:
    """Verify steps with drafts in which position 1, 2, .. was accepted."""
    with_drafts = _steps_with_drafts(turns)
    depth = max((step.num_levels for step in with_drafts), default=0)
    return tuple(
        sum(step.accepted >= position for step in with_drafts) for position in range(1, depth + 1)
    )


def acceptance_by_position(turns: Sequence[MeasuredTurn]) -> tuple[float, ...]:
    """Share of verify steps with drafts in which position 1, 2, .. was accepted."""
    count = len(_steps_with_drafts(turns))
    return tuple(accepted / count for accepted in accepted_at(turns))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLength:
    """Verify steps whose context is shorter than `below` tokens and not in a smaller class."""

    below: int
    emitted: int
    verify_steps: int

    @property
    def acceptance_length(self) -> float:
        """Tokens a verify step delivers; there is at least one step."""
        return self.emitted / self.verify_steps


def acceptance_by_context(turns: Sequence[MeasuredTurn]) -> tuple[ContextLength, ...]:
    """Verify steps by the length of what they could look back on, in classes that double.

    A head with a small window or other rotary angles than it was trained with fades here.
    """
    classes: dict[int, list[VerifyStep]] = {}
    for step in (step for turn in answered(turns) for step in turn.steps):
        below = SHORT_CONTEXT
        while step.position >= below:
            below *= 2
        classes.setdefault(below, []).append(step)
    return tuple(
        ContextLength(below=below, emitted=sum(s.emitted for s in steps), verify_steps=len(steps))
        for below, steps in sorted(classes.items())
    )


def _steps_with_drafts(turns: Sequence[MeasuredTurn]) -> list[VerifyStep]:
    return [step for turn in answered(turns) for step in turn.steps if step.drafted_ids]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Throughput and its three factors.

    tokens_per_s = al_sglang * step_rate * decode_share, where step_rate is verify steps a second
    of decode time, and decode time is that of steps without prefill rows. `mixed_share` is the
    share of wall time in steps that prefilled and verified at once.
    """

    tokens_per_s: float
    al_sglang: float | None
    step_rate: float | None
    decode_share: float
    mixed_share: float
    wall_s: float


def speed(blocks: Sequence[MeasuredBlock]) -> Speed | None:
    """Throughput over timed blocks of all passes, measured turns or not.

    None without a block, and where no token was delivered: nothing was measured then.
    """
    wall_s = sum(block.wall_s for block in blocks)
    tokens = sum(block.output_tokens for block in blocks)
    if wall_s <= 0 or not tokens:
        return None
    told = [block.verify_steps for block in blocks if block.verify_steps is not None]
    verify_steps = sum(told) if len(told) == len(blocks) else None
    decode_s = sum(block.times.decode_s for block in blocks)
    return Speed(
        tokens_per_s=tokens / wall_s,
        al_sglang=share(tokens, verify_steps),
        step_rate=share(verify_steps, decode_s),
        decode_share=decode_s / wall_s,
        mixed_share=sum(block.times.mixed_s for block in blocks) / wall_s,
        wall_s=wall_s,
    )


def occupancy(blocks: Iterable[MeasuredBlock]) -> float | None:
    """Running requests over those that may run, in the mean over steps; None if not recorded."""
    taken = places = 0
    for block in blocks:
        if block.times.running_rows is None or block.parallel is None:
            return None
        taken += block.times.running_rows
        places += block.times.num_steps * block.parallel
    return share(taken, places)


def split_ratio(mine: Speed | None, theirs: Speed | None) -> tuple[float, float, float] | None:
    """Ln of the three factors' ratios, which add up to ln of the throughput ratio.

    None where one of them was not measured.
    """
    if mine is None or theirs is None:
        return None
    factors: Sequence[tuple[float | None, float | None]] = [
        (mine.al_sglang, theirs.al_sglang),
        (mine.step_rate, theirs.step_rate),
        (mine.decode_share, theirs.decode_share),
    ]
    logs = [log(a / b) for a, b in factors if a and b]
    return (logs[0], logs[1], logs[2]) if len(logs) == len(factors) else None
