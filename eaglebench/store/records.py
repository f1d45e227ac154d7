"""What a run folder holds, line by line. Integers stay integers; absence is null.

`requests.jsonl`  one line a cell, arm, question and turn (`MeasuredTurn`, without its steps)
`steps.jsonl`     one line a verify step (`StepLine`); becomes `steps.parquet` at the end
`blocks.jsonl`    one line a timed block of an arm (`MeasuredBlock`)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from math import isfinite, nan
from typing import Any, ClassVar, Self

from eaglebench.records.measured import MeasuredBlock, MeasuredTurn, TurnKey
from eaglebench.records.observation import VerifyStep

SCHEMA_VERSION = 2
MOST = 2**53
"""More than anything here can count, and still a whole number in every reader of JSON."""
_SIGNED = {"seed"}
_GAPS = ("target_gaps", "draft_gaps")
_OF_STEP = tuple(each.name for each in fields(VerifyStep))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine(VerifyStep):
    """A verify step and the turn it belongs to; `step` counts from 0 in the turn."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    cell_id: str
    arm: str
    pass_index: int
    question_id: str
    turn: int
    step: int

    @classmethod
    def of(cls, key: TurnKey, number: int, step: VerifyStep) -> Self:
        """The line of the step of that number in a turn."""
        cell_id, arm, pass_index, question_id, turn = key
        return cls(
            cell_id=cell_id,
            arm=arm,
            pass_index=pass_index,
            question_id=question_id,
            turn=turn,
            step=number,
            **{name: getattr(step, name) for name in _OF_STEP},
        )

    @property
    def key(self) -> TurnKey:
        """Cell, arm, pass, question and turn."""
        return (self.cell_id, self.arm, self.pass_index, self.question_id, self.turn)

    @property
    def alone(self) -> VerifyStep:
        """The step without its place."""
        return VerifyStep(**{name: getattr(self, name) for name in _OF_STEP})


def lines_of(turn: MeasuredTurn) -> list[StepLine]:
    """The lines of a turn's verify steps."""
    return [StepLine.of(turn.key, number, step) for number, step in enumerate(turn.steps)]


def with_gaps(values: Mapping[str, Any]) -> dict[str, Any]:
    """A stored step; a gap that could not be stored (null) is smaller than no threshold."""
    gaps = {n: [nan if g is None else g for g in values[n]] for n in _GAPS if values.get(n)}
    return {**values, **gaps}


def storable(values: Mapping[str, Any]) -> dict[str, Any]:
    """A step's values for a table; null stands for a gap that is no finite number."""
    gaps = {n: [g if isfinite(g) else None for g in values[n]] for n in _GAPS}
    return {**values, **gaps}


def problem_of(record: object) -> str | None:
    """What can't be true of a line; None where nothing is wrong."""
    if isinstance(record, StepLine):
        return step_problem({name: getattr(record, name) for name in (*_OF_STEP, "step")})
    for name, value in _numbers(record):
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(n, int | float) and not 0 <= n <= MOST for n in numbers):
            return f"{name} is {_short(value)}; expected a count or a time"
    return _disagreement(record) if isinstance(record, MeasuredTurn) else None


def step_problem(values: Mapping[str, Any]) -> str | None:
    """What can't be true of a verify step; None where nothing is wrong."""
    parents, drafted = values["parents"], len(values["drafted_ids"])
    if min(values["step"], values["position"], values["accepted"], values["emitted"]) < 0:
        return "a count or a position is negative"
    if values["accepted"] > drafted:
        return f"accepted is {values['accepted']} of {drafted} drafted tokens"
    if parents and len(parents) != drafted:
        return f"{len(parents)} parents of {drafted} drafted tokens"
    if any(not -1 <= parent < node for node, parent in enumerate(parents)):
        return "a node of the tree follows one that comes later"
    return None


def _numbers(record: object) -> Iterator[tuple[str, Any]]:
    """Fields that hold counts or times, those of its parts among them."""
    for each in fields(record):  # type: ignore[arg-type]  # asked of dataclasses alone
        value = getattr(record, each.name)
        if is_dataclass(value):
            yield from _numbers(value)
        elif each.name not in _SIGNED:
            yield each.name, value


def _disagreement(turn: MeasuredTurn) -> str | None:
    """Identities of `records/counters.py` that a turn breaks."""
    counts, ids = turn.counters, len(turn.output_token_ids)
    emitted, sampled, told = counts.emitted, counts.prefill_sampled, turn.accepted_per_step
    checks = {
        "output_tokens = ids": counts.output_tokens == ids,
        "output_tokens = prefill_sampled + emitted": emitted is None
        or sampled is None
        or counts.output_tokens == sampled + emitted,
        "accepted = sum of steps": told is None or counts.accepted in (None, sum(told)),
        "verify_steps = steps": told is None or counts.verify_steps in (None, len(told)),
    }
    broken = [name for name, holds in checks.items() if not holds]
    return f"counts disagree: {', '.join(broken)}" if broken else None


def _short(value: object) -> str:
    text = str(list(value) if isinstance(value, tuple) else value)
    return text if len(text) < 40 else f"{text[:40]}..."


Record = MeasuredTurn | MeasuredBlock | StepLine
