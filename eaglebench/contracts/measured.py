"""What comparison and reports look at: finished turns and timed blocks of a run."""

from dataclasses import dataclass

from eaglebench.contracts.observation import RequestCounters, StepTimes, VerifyStep


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTurn:
    """One turn of one question in one cell and arm.

    `is_measured` is false for turns that only prepare others (a ladder's donors); `error` is set
    for turns that could not run.
    """

    cell_id: str
    arm: str
    question_id: str
    turn: int
    is_measured: bool
    num_draft_nodes: int
    prompt_token_ids: tuple[int, ...]
    output_token_ids: tuple[int, ...]
    accepted_per_step: tuple[int, ...]
    steps: tuple[VerifyStep, ...]
    prefill_gap: float | None
    counters: RequestCounters
    finish_reason: str
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBlock:
    """One timed pass of some questions through one arm."""

    cell_id: str
    arm: str
    block: int
    output_tokens: int
    wall_s: float
    times: StepTimes
