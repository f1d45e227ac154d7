"""Finished turns and timed blocks of a run: the same in memory and, line by line, on disk."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.observation import RequestObservation, StepTimes

TurnKey = tuple[str, str, int, str, int]
TURN_KEY = ("cell_id", "arm", "pass_index", "question_id", "turn")
"""What places a turn in a run, and the type of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTurn(RequestObservation):
    """What an engine told of one turn, and where in the run that was.

    Attributes:
        run_id, cell_id: which run and cell.
        arm: which arm; the knobs' arm unless an arm is measured against itself.
        pass_index: pass over the questions, from 0.
        block, order_in_block: number of the block in the pass, place of the arm in that.
        question_id, turn, category: which prompt; `turn` counts from 0.
        is_measured: false for turns that only prepare others (a ladder's donors).
        knobs: the cell.
        window: positions that window layers saw; None where all layers see everything.
        dtype, device, temperature, seed: of the run.
        prompt_token_ids: the prompt as it was fed.
        question_sha256: digest of everything the question asks, in all its turns; None where it
            was not recorded.
        not_measured: by counter, why it was not measured.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    run_id: str
    cell_id: str
    arm: str
    pass_index: int
    block: int
    order_in_block: int
    question_id: str
    turn: int
    category: str
    is_measured: bool
    knobs: EngineKnobs
    window: int | None
    dtype: str
    device: str
    temperature: float
    seed: int
    prompt_token_ids: tuple[int, ...]
    question_sha256: str | None = None
    not_measured: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> TurnKey:
        """Cell, arm, pass, question and turn."""
        return (self.cell_id, self.arm, self.pass_index, self.question_id, self.turn)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBlock:
    """The same questions through one arm, timed.

    Attributes:
        cell_id, arm, pass_index: as in a turn.
        block, order: number of the block in the pass, place of the arm in it.
        question_ids: in the order in which they were asked.
        output_tokens, verify_steps: of all its turns; None where not measured.
        num_turns: how many there are; None where it was not recorded.
        parallel: most requests at a time; None where it was not recorded.
        wall_s: seconds from the first request to the last answer.
        times: where they went.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    cell_id: str
    arm: str
    pass_index: int
    block: int
    order: int
    question_ids: tuple[str, ...]
    output_tokens: int
    verify_steps: int | None
    num_turns: int | None = None
    parallel: int | None = None
    wall_s: float
    times: StepTimes


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
