"""The integers of a run that a later run is held against, cell by cell and question by question.

Made from a run folder, or read from a committed baseline; the gate knows nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from eaglebench.records.counters import share
from eaglebench.records.doubt import Doubt

PPM = 1_000_000
"""Logs of ratios are stored in millionths, as integers."""
AL_DEFINITION = "emitted/verify_steps"
"""Acceptance length: tokens that verify steps delivered / verify steps, pooled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCounts:
    """One question, all measured turns together.

    `output_sha` and `accept_sha` are digests of the output token ids and of the accepted counts
    step by step; equal digests mean equal turns. `drafts_sha` is one of the drafted tokens, step by
    step, `prompts_sha` one of what was asked (`bench/prompts.py`); None where they were not recorded.
    """

    question_id: str
    emitted: int
    verify_steps: int
    output_sha: str
    accept_sha: str
    prompts_sha: str | None = None
    drafts_sha: str | None = None

    @property
    def acceptance_length(self) -> float | None:
        """Tokens a verify step delivers; None without a step."""
        return share(self.emitted, self.verify_steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmNoise:
    """The in-run throughput ratio of an arm to `no-cache`, and how it scattered over passes.

    Attributes:
        log_ratio_ppm: trimmed mean of ln(ratio) over passes, in millionths.
        pass_sd_ppm: scatter of one pass, in millionths: standard error of the mean x sqrt(passes).
        passes: how many.
        runs: runs of which the ratio is the mean; of several, passes are those of the shortest.
        run_sd_ppm: standard deviation of the ratio of one run between these, in millionths; None
            of fewer than two.
        info_tok_s: tokens a second; for people only, never judged.
    """

    log_ratio_ppm: int
    pass_sd_ppm: int
    passes: int
    info_tok_s: float
    runs: int = 1
    run_sd_ppm: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCounts:
    """One cell and arm.

    Attributes:
        counters: pooled counts by name (`stats/acceptance.py`).
        num_drafts: verify steps that carried drafts.
        accepted_at: how many of those accepted position 1, 2, ...; empty where that is not known.
        failed: turns that failed, those that only prepare others included.
        questions: in the order in which they were asked.
        noise: None where times were not repeated, and for `no-cache`.
        doubts: why it can't be trusted; of a baseline only the kinds that were allowed.
    """

    cell_id: str
    arm: str
    counters: Mapping[str, int]
    num_drafts: int
    accepted_at: tuple[int, ...]
    failed: int
    questions: tuple[QuestionCounts, ...]
    noise: ArmNoise | None = None
    doubts: tuple[Doubt, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Cell and arm."""
        return (self.cell_id, self.arm)

    @property
    def acceptance_length(self) -> float | None:
        """Tokens a verify step delivers, pooled; None where either count was not measured."""
        return share(self.counters.get("emitted"), self.counters.get("verify_steps"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A run in integers.

    Attributes:
        name: the run or the baseline, for people.
        suite, suite_version, suite_sha256: which suite.
        questions_sha256: digest of the file of questions; None where it was not recorded. Not
            compared: what was asked is, question by question.
        workload: options that decide what is computed; they must agree.
        exact, timing: fingerprints; counts need the first, times both.
        created_from: commit of the code, with `-dirty` where it had changes.
        reason: why it became a baseline; None for a run.
        is_complete: whether every question was run.
        arms: by cell and arm.
    """

    name: str
    suite: str
    suite_version: int
    suite_sha256: str
    workload: Mapping[str, object]
    exact: Mapping[str, object]
    timing: Mapping[str, object]
    created_from: str
    reason: str | None
    is_complete: bool
    arms: tuple[ArmCounts, ...]
    questions_sha256: str | None = None
