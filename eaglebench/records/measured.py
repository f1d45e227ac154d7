"""What comparison and reports look at: finished turns and timed blocks of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eaglebench.records.counters import Counters
from eaglebench.records.knobs import DraftKnobs
from eaglebench.records.observation import StepTimes, VerifyStep


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTurn:
    """One turn of one question in one cell and arm.

    `pass_index` counts passes over the questions from 0. `is_measured` is false for turns that only
    prepare others (a ladder's donors); `error` is set for turns that could not run.
    `question_sha256` is a digest of everything the question asks, in all its turns; None where it
    was not recorded.
    """

    cell_id: str
    arm: str
    pass_index: int
    question_id: str
    turn: int
    is_measured: bool
    page_size: int
    draft: DraftKnobs
    preallocation: str
    prompt_token_ids: tuple[int, ...]
    output_token_ids: tuple[int, ...]
    accepted_per_step: tuple[int, ...]
    steps: tuple[VerifyStep, ...]
    prefill_gap: float | None
    counters: Counters
    finish_reason: str
    error: str | None
    question_sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBlock:
    """Some questions through one arm, timed; `pass_index` is the pass it belongs to.

    `parallel` requests could run at a time; None where it was not recorded.
    """

    cell_id: str
    arm: str
    pass_index: int
    block: int
    output_tokens: int
    verify_steps: int | None
    wall_s: float
    times: StepTimes
    parallel: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A whole run as comparison and reports look at it.

    Attributes:
        run_id, status, started: as in `run.json`.
        suite, config, models, git: as in `run.json`; see `docs/record-format.md`.
        environment: the fingerprint's three classes, each from name to value.
        tau: near-tie thresholds (`target`, `draft`); empty where the run measured none.
        turns: of all passes.
        blocks: of all passes.
    """

    run_id: str
    status: str
    started: str
    suite: Mapping[str, Any]
    config: Mapping[str, Any]
    models: Mapping[str, Any]
    git: Mapping[str, Any] | None
    environment: Mapping[str, Mapping[str, Any]]
    tau: Mapping[str, float]
    turns: tuple[MeasuredTurn, ...]
    blocks: tuple[MeasuredBlock, ...]
