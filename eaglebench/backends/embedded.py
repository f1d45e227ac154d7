"""The embedded engine behind the `Runtime` and `Backend` protocols."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from eaglebench.backends.source import Source
from eaglebench.clock import Clock, MonotonicClock
from eaglebench.engine.config import EngineConfig
from eaglebench.engine.engine import Engine
from eaglebench.engine.faults import FAULT_POLICIES
from eaglebench.engine.models import Models
from eaglebench.engine.noise import measure_noise
from eaglebench.engine.policy import POLICIES, EnginePolicy
from eaglebench.engine.pool_room import PoolRoom
from eaglebench.errors import UsageError
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.knobs import CACHE_ARMS, EngineKnobs
from eaglebench.records.models import NumericNoise, RuntimeInfo
from eaglebench.records.observation import RequestObservation, StepTimes
from eaglebench.records.tokenizer import Tokenizer

_BY_ARM = {policy.name: policy for policy in (*POLICIES, *FAULT_POLICIES)}


class EmbeddedBackend:
    """One engine in one cell and arm."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def generate(
        self,
        requests: Iterable[GenerationRequest | None],
        replay: Mapping[str, Sequence[int]] | None = None,
    ) -> Iterator[RequestObservation]:
        """Run requests and yield each as it finishes (see `Backend`).

        Leaving the iterator early aborts whatever is still running.
        """
        source = Source(requests)
        try:
            while not source.is_exhausted or self.engine.has_work:
                refused = self._fill(source, replay or {})
                yield from refused
                if self.engine.has_work:
                    yield from self.engine.step().ended
                elif not refused:
                    source.check_idle()
            self.engine.storage.check_idle()
        finally:
            self.engine.abort_all()

    def take_step_times(self) -> StepTimes:
        """Times since the last call."""
        return self.engine.step_clock.take()

    def reset(self) -> None:
        """Forget all cached prefixes and times."""
        self.engine.reset()
        self.engine.storage.check_idle(is_fresh=True)
        self.engine.step_clock.take()

    def close(self) -> None:
        """Give the pools back."""
        self.engine.close()

    def _fill(
        self, source: "Source", replay: Mapping[str, Sequence[int]]
    ) -> list[RequestObservation]:
        """Add requests while there is room; requests that can never run come back as failed."""
        refused = []
        while self.engine.has_room:
            request = source.take()
            if request is None:
                break
            try:
                self.engine.add(request, replay.get(request.request_id))
            except UsageError as error:
                refused.append(self.engine.refuse(request, error.message))
        return refused


class EmbeddedRuntime:
    """Loaded models; makes one engine for each cell and arm."""

    def __init__(
        self, models: Models, tokenizer: Tokenizer, info: RuntimeInfo, clock: Clock | None = None
    ) -> None:
        self.models = models
        self.tokenizer = tokenizer
        self.info = info
        self.clock = clock or MonotonicClock()

    def backend(self, knobs: EngineKnobs) -> EmbeddedBackend:
        """An engine with empty pools for these knobs.

        Raises:
            UsageError: an unknown arm, or knobs that don't fit the loaded models.
        """
        models = self._models(knobs)
        config = self._config(knobs, models)
        return EmbeddedBackend(
            Engine(models, config, clock=self.clock, decode=self.tokenizer.decode)
        )

    def prompt_room(self, knobs: EngineKnobs) -> PoolRoom:
        """What fits into the pools of `backend(knobs)`, without making them.

        Raises:
            UsageError: as for `backend`.
        """
        models = self._models(knobs)
        config = self._config(knobs, models)
        return PoolRoom(config, models.draft_room(knobs, config.context_length))

    def measure_noise(self, prompts: Sequence[Sequence[int]]) -> NumericNoise:
        """Largest logit difference between shapes over these prompts."""
        return measure_noise(self.models, prompts)

    def close(self) -> None:
        """Nothing to do: the models go with this object."""

    def _models(self, knobs: EngineKnobs) -> Models:
        """The loaded models, with another window where the knobs set one."""
        if knobs.sliding_window is None:
            return self.models
        target = self.models.target
        return replace(self.models, target=target.with_window(knobs.window_of(target.window)))

    def _config(self, knobs: EngineKnobs, models: Models) -> EngineConfig:
        return EngineConfig(
            knobs=knobs,
            policy=make_policy(knobs.arm),
            context_length=self._context_length(knobs),
            window=models.target.window,
        )

    def _context_length(self, knobs: EngineKnobs) -> int:
        limit = self.models.target.context_length
        if knobs.context_length is None:
            return limit
        if knobs.context_length > limit:
            raise UsageError(
                f"context length {knobs.context_length} is more than the target's {limit}"
            )
        return knobs.context_length


def make_policy(arm: str) -> EnginePolicy:
    """What an arm changes.

    Raises:
        UsageError: there is no such arm.
    """
    known = list(dict.fromkeys((*CACHE_ARMS, *_BY_ARM)))
    if arm not in known:
        raise UsageError(f"unknown arm {arm!r}; expected one of {', '.join(known)}")
    return _BY_ARM.get(arm, EnginePolicy)(arm)
