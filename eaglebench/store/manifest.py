"""What every reader of `run.json` and `environment.json` may rely on; more is kept as it is.

A field that readers use has its type here, so that a file changed by hand is refused where it is
read. Fields that older runs lack are optional, and fields that only newer ones have are kept.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from eaglebench.store.records import MOST

Whole = Annotated[int, Field(ge=0, le=MOST)]
Threshold = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Facts(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class NamedSuite(_Facts):
    """Which suite was run."""

    name: str
    version: Whole
    sha256: str | None = None


class NamedModels(_Facts):
    """Which models were run."""

    target_id: str
    dtype: str
    warnings: list[str]
    draft_id: str | None = None
    draft_positions: Whole | None = None
    tokenizer_size: Whole | None = None
    vocab_size: Whole | None = None
    window: Whole | None = None
    kv_bytes_per_slot: Whole | None = None
    window_bytes_per_slot: Whole | None = None


class SettledOptions(_Facts):
    """The options of the run, as far as readers look at them."""

    suite: str | None = None
    model: str | None = None
    arms: list[str] | None = None
    algorithm: str | None = None
    matrix: dict[str, Any] | None = None
    temperature: Threshold | None = None
    max_total_tokens: Whole | None = None
    swa_full_tokens_ratio: Threshold | None = None
    accept_threshold_single: Threshold | None = None
    accept_threshold_acc: Threshold | None = None


class Code(_Facts):
    """Which commit was run."""

    sha: str | None = None
    dirty: bool | None = None


class Manifest(_Facts):
    """`run.json`."""

    status: str
    started: str | None = None
    config: SettledOptions
    suite: NamedSuite
    models: NamedModels
    git: Code | None = None
    tau: dict[str, Threshold] | None = None


class Environment(_Facts):
    """`environment.json`: facts that decide integers, those that decide times, and others."""

    exact: dict[str, Any] = Field(default_factory=dict)
    timing: dict[str, Any] = Field(default_factory=dict)
    info: dict[str, Any] = Field(default_factory=dict)
