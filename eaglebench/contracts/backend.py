"""The one seam between the harness and whatever runs a model.

A `Runtime` holds loaded models; it makes one `Backend` for each cell and arm. The harness knows
these protocols and nothing of torch; tests drive it with a scripted runtime.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from eaglebench.contracts.generation import GenerationRequest
from eaglebench.contracts.knobs import EngineKnobs
from eaglebench.contracts.observation import RequestObservation, StepTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """Which models to load and how.

    `target` and `draft` are local folders; `target_name` and `draft_name` are what the user called
    them. Without a draft the target decodes plainly. `algorithm` refuses a head of another kind;
    None takes any. `aux_layer_ids` overrules which states of the target feed the head, `draft_config`
    other fields of its config.
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
    CPU.
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
    weights_bytes: int
    kv_bytes_per_slot: int
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


class Tokenizer(Protocol):
    """Text to token ids and back."""

    def encode(self, text: str) -> list[int]:
        """Token ids of a piece of text, without special tokens added."""
        ...

    def encode_prompt(self, text: str) -> list[int]:
        """Token ids of a raw prompt, with the special tokens that belong around it."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of token ids; ids without text decode to the replacement character."""
        ...

    def render_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Token ids of a conversation (`role`, `content`), ready for the assistant's turn.

        Raises:
            UsageError: the model's chat template refuses these messages or there is none.
        """
        ...


class Backend(Protocol):
    """One engine in one cell and arm."""

    def generate(
        self,
        requests: Iterable[GenerationRequest | None],
        replay: Mapping[str, Sequence[int]] | None = None,
    ) -> Iterator[RequestObservation]:
        """Run requests and yield each as it finishes.

        `requests` is pulled whenever there is room for one more; an element None means "nothing
        to start before another one finishes". `replay` maps a request id to the tokens that are
        taken as the target's choices.
        """
        ...

    def take_step_times(self) -> StepTimes:
        """Times since the last call."""
        ...

    def reset(self) -> None:
        """Forget all cached prefixes and times."""
        ...

    def close(self) -> None:
        """Give the pools back."""
        ...


TOO_LONG_HINT = (
    "raise --max-total-tokens or --context-length; where window layers lack room, compute the "
    "prompt in chunks"
)
"""What to try where `PromptRoom` names an obstacle."""


class PromptRoom(Protocol):
    """What fits into an engine's pools."""

    def obstacle(self, num_prompt_tokens: int, max_new_tokens: int) -> str | None:
        """Why a prompt can't run even alone, with both numbers; None where it can.

        A prompt can run if it can be computed and verified once, or needs no verify step.
        """
        ...


class Runtime(Protocol):
    """Loaded models, shared by all cells and arms of a run."""

    info: RuntimeInfo
    tokenizer: Tokenizer

    def backend(self, knobs: EngineKnobs) -> Backend:
        """An engine with empty pools for these knobs.

        Raises:
            UsageError: the knobs don't fit the loaded models.
        """
        ...

    def prompt_room(self, knobs: EngineKnobs) -> PromptRoom:
        """What fits into the pools of `backend(knobs)`, without making them.

        Raises:
            UsageError: the knobs don't fit the loaded models.
        """
        ...

    def measure_noise(self, prompts: Sequence[Sequence[int]]) -> NumericNoise:
        """Largest logit difference between shapes over these prompts."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...
