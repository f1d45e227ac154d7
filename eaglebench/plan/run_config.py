"""Everything that decides what a run does, checked once and written into its record."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from eaglebench.errors import UsageError
from eaglebench.plan.explain import explain_validation
from eaglebench.plan.matrix import Limits, MatrixSpec
from eaglebench.plan.pairs import PairRange, parse_share
from eaglebench.records.generation import SamplingRule
from eaglebench.records.knobs import ARMS, BASELINE_ARM, base_arm

Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]
DEFAULT_MODEL = "smollm2-135m"
DTYPES = ("float64", "float32", "bfloat16", "float16")
_DTYPE_ALIASES = {"fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class RunConfig(BaseModel):
    """The options of one run, as they were settled from flags, environment, files and suite.

    Attributes:
        suite: name of the suite.
        model: asset name, folder or Hub id of the target.
        draft_model: the same for the head; None is the one that belongs to the target.
        algorithm: EAGLE is the kind of EAGLE 1 and 2, NONE is plain decoding. Unless it was given,
            it follows the head that was loaded.
        aux_layer_ids: states of the target that feed the head, whatever its config says; None asks
            the config.
        draft_config: fields of the head's config that are said otherwise; None is as it stands.
        arms: what is compared in every cell, in the order of the table.
        matrix: what is varied.
        num_questions: most conversations; None is all.
        question_file: instead of the suite's questions.
        question_fields: our names to the file's, where they differ.
        max_new_tokens: most tokens of an answer where the workload sets none.
        temperature: 0 decodes greedily; above it tokens are drawn, the same in every arm.
        top_p, sampling_top_k: which tokens may be drawn; 1 and 0 are all. Greedy decoding ignores
            them.
        sampling_rule: whether drafts are the head's likeliest tokens or drawn from its distribution.
        accept_threshold_single, accept_threshold_acc: below 1 drafts are accepted too often, which
            is lossy. Greedy decoding ignores them, and the rule as well.
        seed: draws workloads and the order of arms.
        ignore_eos: end tokens don't end an answer.
        stop: texts that end an answer.
        prompt_format: `chat` uses the model's template, `raw` feeds text as it stands.
        max_total_tokens: slots of the KV pools.
        swa_full_tokens_ratio: slots of the window layers' pool, as a share of those.
        context_length: most tokens of a request; None is the model's own limit.
        pairs: passes over the questions, each a pair of times: `LEAST:MOST`, or a number.
        precision: half-width of the throughput ratio at which no further pass is made.
        warmup: passes over a prompt outside the suite before anything is measured.
        replay: a run or a file whose tokens are taken as the target's choices.
        labels: the user's own notes, kept with the run.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str
    model: str = DEFAULT_MODEL
    draft_model: str | None = None
    algorithm: Literal["EAGLE3", "EAGLE", "NONE"] = "EAGLE3"
    aux_layer_ids: tuple[int, ...] | None = None
    draft_config: dict[str, Any] | None = None
    arms: tuple[str, ...] = ("radix", BASELINE_ARM)
    matrix: MatrixSpec = MatrixSpec()
    num_questions: Positive | None = None
    question_file: str | None = None
    question_fields: dict[str, str] = Field(default_factory=dict)
    max_new_tokens: Positive = 256
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    top_p: Share = 1.0
    sampling_top_k: Annotated[int, Field(ge=0)] = 0
    sampling_rule: SamplingRule = "target-only"
    accept_threshold_single: Share = 1.0
    accept_threshold_acc: Share = 1.0
    seed: int = 0
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()
    system_prompt: str | None = None
    prompt_format: Literal["chat", "raw"] = "chat"
    max_total_tokens: Positive = 16384
    swa_full_tokens_ratio: Share = 0.8
    context_length: Positive | None = None
    dtype: Literal["float64", "float32", "bfloat16", "float16"] | None = None
    device: str = "cpu"
    attention_backend: str = "auto"
    num_threads: Positive | None = None
    trust_remote_code: bool = False
    pairs: str = "1"
    precision: float = 0.01
    warmup: Annotated[int, Field(ge=0)] = 1
    replay: str | None = None
    continue_on_error: bool = False
    experiment_name: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    profile: bool = False

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

    @field_validator("pairs", mode="before")
    @classmethod
    def _check_pairs(cls, pairs: Any) -> str:
        return str(PairRange.parse(str(pairs)))

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
    def pair_range(self) -> PairRange:
        """`pairs` as numbers."""
        return PairRange.parse(self.pairs)

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


def make_run_config(values: dict[str, Any]) -> RunConfig:
    """A checked configuration.

    Raises:
        UsageError: a value is unknown or impossible; the message names its flag.
    """
    try:
        return RunConfig.model_validate(values)
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
            parts.append(f"--{root.replace('_', '-')}: {rest}")
        else:
            parts.append(part)
    return "; ".join(parts)
