"""What a run folder holds, line by line. Integers stay integers; absence is null.

`requests.jsonl`  one line a cell, arm, question and turn (`TurnRecord`)
`steps.jsonl`     one line a verify step (`StepRecord`); becomes `steps.parquet` at the end
`blocks.jsonl`    one line a timed block of an arm (`BlockRecord`)
"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from eaglebench.records.counters import Counters
from eaglebench.records.generation import FinishReason
from eaglebench.store import schema1

SCHEMA_VERSION = 2

TurnKey = tuple[str, str, int, str, int]
MOST = 2**53
"""More than anything here can count, and still a whole number in every reader of JSON."""
_SIGNED = {"seed"}


class PromptRecord(BaseModel):
    """One prompt as it was fed; arms share it unless an earlier answer differed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question_id: str
    turn: int
    category: str
    prompt_sha256: str
    prompt_token_ids: list[int]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, values: Any) -> Any:
        return schema1.renamed(values)


class _Counted(_Line):
    """A line of counts and times: none is negative, and each is a number."""

    @model_validator(mode="after")
    def _counts_are_counts(self) -> Self:
        for name, value in self:
            numbers = value if isinstance(value, list) else [value]
            if name not in _SIGNED and any(
                isinstance(number, int | float) and not 0 <= number <= MOST for number in numbers
            ):
                raise ValueError(f"{name} is {_short(value)}; expected a count or a time")
        return self


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


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) < 40 else f"{text[:40]}..."


class TurnRecord(_Counted):
    """One answered (or failed) turn. Counter meanings: `records/counters.py`."""

    run_id: str
    cell_id: str
    arm: str
    pass_index: int
    block: int
    order_in_block: int
    question_id: str
    turn: int
    category: str
    measured: bool
    page_size: int
    chunked_prefill_size: int | None
    sliding_window: int | None = None
    eagle_topk: int
    num_steps: int
    num_draft_tokens: int
    parallel: int
    preallocation: str
    dtype: str
    device: str
    temperature: float
    seed: int
    counters: Counters
    not_measured: dict[str, str] = Field(default_factory=dict)
    accept_hist: list[int]
    accepted_per_step: list[int]
    prompt_token_ids: list[int]
    output_token_ids: list[int]
    prompt_sha256: str
    question_sha256: str | None = None
    output_sha256: str
    prefill_gap: float | None
    t_queue_s: float
    t_prefill_s: float
    t_decode_s: float
    t_total_s: float
    finish_reason: FinishReason
    error: str | None

    @model_validator(mode="before")
    @classmethod
    def _nested(cls, values: Any) -> Any:
        return schema1.nested(values)

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        """The identities of `records/counters.py`; a line that breaks one is not a record."""
        counts, ids = self.counters, len(self.output_token_ids)
        emitted, sampled = counts.emitted, counts.prefill_sampled
        for name, value in counts.as_dict().items():
            if value is not None and not 0 <= value <= MOST:
                raise ValueError(f"{name} is {value}; expected a count or a time")
        checks = {
            "output_tokens = ids": counts.output_tokens == ids,
            "output_tokens = prefill_sampled + emitted": emitted is None
            or sampled is None
            or counts.output_tokens == sampled + emitted,
            "accepted = sum of steps": counts.accepted in (None, sum(self.accepted_per_step)),
            "verify_steps = steps": counts.verify_steps in (None, len(self.accepted_per_step)),
            "histogram = verify_steps": counts.verify_steps in (None, sum(self.accept_hist)),
        }
        broken = [name for name, holds in checks.items() if not holds]
        if broken:
            raise ValueError(f"counts disagree: {', '.join(broken)}")
        return self

    @property
    def key(self) -> TurnKey:
        """Cell, arm, pass, question and turn."""
        return (self.cell_id, self.arm, self.pass_index, self.question_id, self.turn)


class StepRecord(_Line):
    """One verify step of one turn.

    A gap is null where it was no finite number: JSON has no other word for it.
    """

    cell_id: str
    arm: str
    pass_index: int
    question_id: str
    turn: int
    step: int
    position: int
    drafted_ids: list[int]
    target_ids: list[int]
    accepted: int
    emitted: int
    target_gaps: list[float | None]
    draft_gaps: list[float | None]
    parents: list[int] = Field(default_factory=list)

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        problem = step_problem(self.__dict__)
        if problem is not None:
            raise ValueError(problem)
        return self

    @property
    def key(self) -> TurnKey:
        """Cell, arm, pass, question and turn."""
        return (self.cell_id, self.arm, self.pass_index, self.question_id, self.turn)


class BlockRecord(_Counted):
    """One timed block: the same questions through one arm."""

    cell_id: str
    arm: str
    pass_index: int
    block: int
    order: int
    question_ids: list[str]
    output_tokens: int
    verify_steps: int | None
    num_turns: int | None = None
    parallel: int | None = None
    wall_s: float
    prefill_s: float
    mixed_s: float
    decode_s: float
    prefill_steps: int
    mixed_steps: int
    decode_steps: int
    running_rows: int | None = None
