"""Which models a run loads, what was loaded, and how exact their numbers are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT_BACKEND = "embedded"
"""The engine of this project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """Which models to load and how.

    `target` and `draft` are local folders; `target_name` and `draft_name` are what the user called
    them. Without a draft the target decodes plainly. `algorithm` refuses a head of another kind;
    None takes any. `aux_layer_ids` overrules which states of the target feed the head, `draft_config`
    other fields of its config. `backend` names the engine, `engine_python` the python that it runs
    under, `engine_args` arguments of its own.
    """

    target: str
    draft: str | None = None
    target_name: str | None = None
    draft_name: str | None = None
    algorithm: str | None = None
    aux_layer_ids: tuple[int, ...] | None = None
    draft_config: Mapping[str, Any] | None = None
    dtype: str | None = None
    device: str = "cpu"
    attention_backend: str = "auto"
    trust_remote_code: bool = False
    num_threads: int | None = None
    backend: str = DEFAULT_BACKEND
    engine_python: str | None = None
    engine_args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorFacts:
    """Which accelerator computes, and through which software; None is not said by the system.

    Attributes:
        name: as its vendor calls it.
        compute_capability: of a CUDA device, such as 9.0.
        cuda: version of CUDA that torch was built with.
        driver: version of the driver.
        memory_bytes: of the device.
    """

    name: str
    compute_capability: str | None = None
    cuda: str | None = None
    driver: str | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeInfo:
    """What was loaded, for the record and for checks before a run.

    `algorithm` is the kind of head that was loaded, None without one; `aux_counting` says where
    `aux_layer_ids` come from, `draft_positions` how many positions it was made for (None is no
    limit), `draft_config` which fields of its config the user said otherwise.
    `tokenizer_size` counts the ids that have text; a padded `vocab_size` is larger.
    `target_sha256` and `draft_sha256` are digests of weights, `target_config_sha256` and
    `draft_config_sha256` of what the configs say; None where a backend can't tell.
    `window` is the number of positions that window layers see, None without such layers;
    `window_bytes_per_slot` is their part of `kv_bytes_per_slot`.
    `num_threads` is the number of CPU threads in use, whoever chose it; `accelerator` is None on a
    CPU. `engine` is who an engine outside says it is: its version and those of its libraries; what
    such an engine does not tell (its bytes) is None.
    """

    backend: str
    target_id: str
    target_sha256: str
    draft_id: str | None
    draft_sha256: str | None
    tokenizer_sha256: str
    dtype: str
    device: str
    attention_backend: str
    vocab_size: int
    draft_vocab_size: int | None
    context_length: int
    stop_token_ids: tuple[int, ...]
    aux_layer_ids: tuple[int, ...]
    warnings: tuple[str, ...]
    weights_bytes: int | None
    kv_bytes_per_slot: int | None
    algorithm: str | None = None
    aux_counting: str | None = None
    draft_positions: int | None = None
    draft_config: Mapping[str, Any] | None = None
    tokenizer_size: int | None = None
    window: int | None = None
    window_bytes_per_slot: int = 0
    num_threads: int | None = None
    accelerator: AcceleratorFacts | None = None
    target_config_sha256: str | None = None
    draft_config_sha256: str | None = None
    engine: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericNoise:
    """What another matrix shape does to logits, measured on this run's own prompts.

    Attributes:
        target, draft: the largest difference of any logit.
        target_lead, draft_lead: by how much the lead of the likeliest token over the second one
            changes, in the worst of a hundred places (99 % quantile); None where a backend can't
            say.
    """

    target: float
    draft: float
    target_lead: float | None = None
    draft_lead: float | None = None
