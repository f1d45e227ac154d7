"""Everything a run was asked for, checked as one value and kept in `run.json`."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from eaglebench.contracts.knobs import ARMS, PREALLOCATIONS
from eaglebench.errors import UsageError
from eaglebench.plan.matrix import Matrix, expand

BASELINE_ARM = "no-cache"


class RunConfig(BaseModel):
    """Options of one run; lists are axes of the matrix."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str
    model: str = "smollm2-135m"
    draft_model: str | None = None
    algorithm: Literal["EAGLE3", "NONE"] = "EAGLE3"
    arms: list[str] = ["radix", BASELINE_ARM]
    page_size: list[int] = [1]
    chunked_prefill_size: list[int] = [-1]
    num_steps: list[int] = [2]
    eagle_topk: list[int] = [1]
    num_draft_tokens: list[int] | None = None
    parallel: list[int] = [1]
    preallocation: list[str] = ["none"]
    preallocate_tokens: int = Field(default=64, ge=0)
    num_questions: int | None = Field(default=10, ge=1)
    question_file: str | None = None
    max_new_tokens: int = Field(default=256, ge=1)
    temperature: float = 0.0
    seed: int = 0
    ignore_eos: bool = False
    stop: list[str] = []
    system_prompt: str | None = None
    prompt_format: Literal["chat", "raw"] = "chat"
    max_total_tokens: int = Field(default=16384, ge=1)
    context_length: int | None = Field(default=None, ge=2)
    dtype: str | None = None
    device: str = "cpu"
    attention_backend: str = "auto"
    num_threads: int | None = Field(default=None, ge=1)
    trust_remote_code: bool = False
    warmup: int = Field(default=1, ge=0)
    replay: str | None = None
    continue_on_error: bool = False
    labels: dict[str, str] = {}
    matrix: dict[str, Any] | None = None

    @field_validator("arms")
    @classmethod
    def _known_arms(cls, arms: list[str]) -> list[str]:
        unknown = [arm for arm in arms if arm not in ARMS]
        if unknown or not arms:
            raise ValueError(f"unknown arm {unknown or arms}; expected some of {', '.join(ARMS)}")
        if len(set(arms)) != len(arms):
            raise ValueError("an arm is named twice")
        return arms

    @field_validator("temperature")
    @classmethod
    def _greedy_only(cls, temperature: float) -> float:
        if temperature != 0:
            raise ValueError(
                f"{temperature} is not possible yet: this version decodes greedily (0)"
            )
        return temperature

    @field_validator("preallocation")
    @classmethod
    def _known_policies(cls, policies: list[str]) -> list[str]:
        unknown = [name for name in policies if name not in PREALLOCATIONS]
        if unknown:
            raise ValueError(f"unknown policy {unknown}; expected {', '.join(PREALLOCATIONS)}")
        return policies


def make_run_config(values: dict[str, Any]) -> RunConfig:
    """Check option values.

    Raises:
        UsageError: the first thing that is wrong, with the name of its option.
    """
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = "--" + str(first["loc"][0]).replace("_", "-") if first["loc"] else "options"
        reason = str(first["msg"]).removeprefix("Value error, ")
        raise UsageError(f"{name}: {reason}") from error


def make_matrix(config: RunConfig) -> Matrix:
    """The cells of a run.

    Raises:
        UsageError: not one combination can run; the message says why.
    """
    steps = [0] if config.algorithm == "NONE" else config.num_steps
    axes: dict[str, list[Any]] = {
        "page_size": config.page_size,
        "chunked_prefill_size": config.chunked_prefill_size,
        "num_steps": steps,
        "eagle_topk": config.eagle_topk,
        "parallel": config.parallel,
        "preallocation": config.preallocation,
    }
    if config.num_draft_tokens is not None:
        axes["num_draft_tokens"] = config.num_draft_tokens
    extra = config.matrix or {}
    axes.update(extra.get("axes", {}))
    fixed = {
        "preallocate_tokens": config.preallocate_tokens,
        "max_total_tokens": config.max_total_tokens,
        "context_length": config.context_length,
    }
    for name in extra.get("zip", {}):
        axes.pop(name, None)
    first = {name: values[0] for name, values in axes.items()}
    matrix = expand(
        axes,
        fixed,
        include=[{**first, **more} for more in extra.get("include", [])],
        exclude=extra.get("exclude", []),
        zipped=extra.get("zip"),
    )
    if not matrix.cells:
        reasons = "; ".join(dict.fromkeys(skipped.reason for skipped in matrix.skipped))
        raise UsageError(f"no cell of the matrix can run: {reasons}")
    return matrix
