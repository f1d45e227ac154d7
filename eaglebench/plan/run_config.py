"""Everything that decides what a run does, checked once and written into its record."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError, field_validator, model_validator

from eaglebench.errors import UsageError
from eaglebench.plan.explain import explain_validation
from eaglebench.plan.matrix import Limits
from eaglebench.plan.passes import PassRange, parse_share
from eaglebench.plan.question_fields import QuestionFields
from eaglebench.plan.run_fields import EngineFields
from eaglebench.records.flags import flag_of
from eaglebench.records.knobs import ARMS, base_arm

FORMER_NAMES = {"pairs": "passes"}
"""Fields as runs and suites of earlier versions call them."""
_DTYPE_ALIASES = {"fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class RunConfig(QuestionFields, EngineFields):
    """The options of one run, as they were settled from flags, environment, files and suite."""

    @field_validator("dtype", mode="before")
    @classmethod
    def _spell_dtype(cls, dtype: Any) -> Any:
        return _DTYPE_ALIASES.get(dtype, dtype) if isinstance(dtype, str) else dtype

    @field_validator("arms")
    @classmethod
    def _check_arms(cls, arms: tuple[str, ...]) -> tuple[str, ...]:
        if not arms:
            raise ValueError(f"no arm to measure; known: {', '.join(ARMS)}")
        for arm in arms:
            if base_arm(arm) not in ARMS:
                raise ValueError(f"unknown arm {arm!r}; known: {', '.join(ARMS)}")
        if len(set(arms)) < len(arms):
            raise ValueError("an arm is named twice")
        return arms

    @field_validator("passes", mode="before")
    @classmethod
    def _check_passes(cls, passes: Any) -> str:
        return str(PassRange.parse(str(passes)))

    @field_validator("precision", mode="before")
    @classmethod
    def _check_precision(cls, precision: Any) -> float:
        return parse_share(precision)

    @field_validator("stop")
    @classmethod
    def _check_stop(cls, stop: tuple[str, ...]) -> tuple[str, ...]:
        if any(not text for text in stop):
            raise ValueError("a stop string is empty")
        return stop

    @model_validator(mode="after")
    def _check_lengths(self) -> "RunConfig":
        if self.context_length is not None and self.context_length > self.max_total_tokens:
            raise ValueError(
                f"context length {self.context_length} is larger than the pool of "
                f"{self.max_total_tokens} tokens; raise --max-total-tokens"
            )
        return self

    @model_validator(mode="after")
    def _check_head(self) -> "RunConfig":
        if self.algorithm == "NONE" and self.draft_config:
            raise ValueError(
                "--draft-config is given, and with --algorithm NONE there is no head that would read it"
            )
        return self

    @model_validator(mode="after")
    def _check_thresholds(self) -> "RunConfig":
        if self.sampling_rule != "target-only" and self.has_thresholds:
            raise ValueError(
                "--accept-threshold-single and --accept-threshold-acc belong to --sampling-rule "
                f"target-only; {self.sampling_rule} has no thresholds"
            )
        return self

    @property
    def has_thresholds(self) -> bool:
        """Whether an acceptance threshold is below 1."""
        return min(self.accept_threshold_single, self.accept_threshold_acc) < 1

    @property
    def pass_range(self) -> PassRange:
        """`passes` as numbers."""
        return PassRange.parse(self.passes)

    @property
    def limits(self) -> Limits:
        """What holds for every cell."""
        return Limits(
            max_total_tokens=self.max_total_tokens,
            swa_full_tokens_ratio=self.swa_full_tokens_ratio,
            context_length=self.context_length,
            is_speculative=self.algorithm != "NONE",
            arms=self.arms,
            sampling_rule=self.sampling_rule,
        )


def option_defaults() -> dict[str, Any]:
    """Every option as it is when nobody says anything, in the form in which runs store them."""
    return RunConfig(suite="").model_dump(mode="json")


def under_present_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options of any version, each by the name that it has now."""
    twice = [f"{old} and {new}" for old, new in FORMER_NAMES.items() if {old, new} <= {*values}]
    if twice:
        raise UsageError(f"one option by two names: {', '.join(twice)}", hint="leave one out")
    return {FORMER_NAMES.get(name, name): value for name, value in values.items()}


def make_run_config(values: dict[str, Any]) -> RunConfig:
    """A checked configuration.

    Raises:
        UsageError: a value is unknown or impossible; the message names its flag.
    """
    try:
        return RunConfig.model_validate(under_present_names(values))
    except ValidationError as error:
        raise UsageError(_as_flags(explain_validation(error, RunConfig))) from error


def _as_flags(message: str) -> str:
    """`max_new_tokens: ...` as the user typed it: `--max-new-tokens: ...`."""
    parts = []
    for part in message.split("; "):
        name, colon, rest = part.partition(": ")
        root = name.split(".")[0]
        if colon and root == "matrix":
            parts.append(rest)
        elif colon and root in RunConfig.model_fields:
            parts.append(f"{flag_of(root)}: {rest}")
        else:
            parts.append(part)
    return "; ".join(parts)
