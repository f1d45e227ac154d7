"""The one seam between a run and whatever runs a model.

A `Runtime` holds loaded models; it makes one `Backend` for each cell and arm. Who drives a run knows
these protocols and nothing of torch; tests drive it with a scripted runtime.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from eaglebench.records.generation import GenerationRequest
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.models import NumericNoise, RuntimeInfo
from eaglebench.records.observation import RequestObservation, StepTimes
from eaglebench.records.tokenizer import Tokenizer


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
