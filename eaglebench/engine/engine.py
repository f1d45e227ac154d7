"""The embedded engine: add requests, step until they have ended, abort, audit."""

from collections.abc import Sequence
from dataclasses import dataclass

from eaglebench.clock import Clock
from eaglebench.engine.config import EngineConfig
from eaglebench.engine.models import Models
from eaglebench.engine.plan import PrefillRow
from eaglebench.engine.pool_room import PoolRoom
from eaglebench.engine.request import EngineRequest, RequestState
from eaglebench.engine.scheduler import Scheduler
from eaglebench.engine.step import RowResult, StepRunner
from eaglebench.engine.step_clock import StepClock
from eaglebench.engine.stopping import Decode, StopRule
from eaglebench.engine.storage import KVStorage
from eaglebench.errors import UsageError
from eaglebench.kv.audit import audit
from eaglebench.kv.pool import LayerPools
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.observation import RequestObservation

DUMMY_PAGES = 1


@dataclass(frozen=True, slots=True)
class StepEvents:
    """What a step brought: new tokens by request id, and requests that ended."""

    new_ids: dict[str, tuple[int, ...]]
    ended: tuple[RequestObservation, ...]


class Books:
    """Torn from the beginning of a change until it has ended, whatever ends it."""

    def __init__(self) -> None:
        self.are_torn = False

    def __enter__(self) -> None:
        self.are_torn = True

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.are_torn = kind is not None


class Engine:
    """Continuous batching over one target, one head and their pools."""

    def __init__(
        self, models: Models, config: EngineConfig, *, clock: Clock, decode: Decode
    ) -> None:
        self.models = models
        self.config = config
        self.clock = clock
        self.decode = decode
        num_slots = (config.num_pages + DUMMY_PAGES) * config.knobs.page_size
        self.target_pool = self._make_target_pool(num_slots)
        drafts = models.draft_shape(config.knobs).num_levels > 0
        self.draft_pool = (
            models.head.make_pool(num_slots, fill=config.pool_fill)
            if models.head is not None and drafts
            else None
        )
        self.step_clock = StepClock()
        self.runner = StepRunner(config, models, self.target_pool, self.draft_pool)
        self._requests: dict[str, EngineRequest] = {}
        self._ended: list[EngineRequest] = []  # in the step that runs, or was broken off
        self._books = Books()
        self._num_arrivals = 0
        self.reset()

    def _make_target_pool(self, num_slots: int) -> LayerPools:
        """One pool for all layers, or a smaller one beside it for window layers."""
        fill = self.config.pool_fill
        if self.config.window is None:
            return self.models.target.make_pool(num_slots, fill=fill)
        windows = (self.config.num_window_pages + DUMMY_PAGES) * self.config.knobs.page_size
        return self.models.target.make_hybrid_pool(num_slots, windows, fill=fill)

    def reset(self) -> None:
        """Forget all cached prefixes.

        Raises:
            UsageError: requests are still running.
        """
        if self._requests:
            raise UsageError("the engine can't be reset while requests are running")
        with self._books:
            self._empty_books()

    def _empty_books(self) -> None:
        room = PoolRoom(self.config, self.runner.room)
        self.storage = KVStorage(self.config, room)
        self.scheduler = Scheduler(self.config, self.storage, room)

    @property
    def has_work(self) -> bool:
        """Whether any request has not ended."""
        return bool(self._requests)

    @property
    def has_room(self) -> bool:
        """Whether one more request could start at once."""
        return self.scheduler.has_room

    def add(self, request: GenerationRequest, replay: Sequence[int] | None = None) -> None:
        """Queue a request.

        Raises:
            UsageError: it can never run, or its id is taken.
        """
        if request.request_id in self._requests:
            raise UsageError(f"request id {request.request_id} is already running")
        if request.max_new_tokens < 1:
            raise UsageError(f"max_new_tokens is {request.max_new_tokens}; expected at least 1")
        if replay is not None and not replay:
            raise UsageError(f"the replay of request {request.request_id} holds no token")
        self._check_token_ids(request)
        self._check_sampling(request)
        added = EngineRequest(
            request,
            arrival=self._num_arrivals,
            rule=self._rule(request, replay),
            replay=replay,
            added_s=self.clock.now_s(),
        )
        self.scheduler.check(added)
        self._num_arrivals += 1
        with self._books:
            self.scheduler.queue(added)
            self._requests[request.request_id] = added

    def step(self) -> StepEvents:
        """Run one step; does nothing when there is nothing to do.

        Whatever breaks it off, at whatever moment, `abort`, `abort_all` and `step` go on from there:
        requests that had ended are reported with their own reason, all others stand where they stood
        before the step, and the books begin anew, without cached prefixes.
        """
        if self._books.are_torn:
            self._mend()
        self._ended = []
        with self._books:
            return self._step()

    def _step(self) -> StepEvents:
        started_s = self.clock.now_s()
        for request in self._requests.values():
            request.mark()
        plan = self.scheduler.plan()
        num_running = len(self.scheduler.running)
        for row in plan.prefill:
            row.request.note_admitted(started_s)
        with self.storage.pages.unchanged():
            results = self.runner.run(plan, self.storage.pages.window_slots) if plan.rows else []
        self._audit(results)
        for result in results:
            self._settle(result)
        for request in self.scheduler.running:
            self.storage.slide(request)
        now_s = self.clock.now_s()
        for row in plan.prefill:
            if not row.request.is_prefilling:
                row.request.note_prefilled(now_s)
        self.step_clock.add(
            now_s - started_s,
            has_prefill=bool(plan.prefill),
            has_verify=bool(plan.verify),
            num_running=num_running,
        )
        self._ended = [each for each in self._requests.values() if each.finish_reason is not None]
        self._requests = {n: r for n, r in self._requests.items() if r.finish_reason is None}
        self._audit([])
        new_ids = {r.row.request.request_id: r.new_ids for r in results if r.new_ids}
        return StepEvents(new_ids, tuple(request.observe(now_s) for request in self._ended))

    def abort(self, request_id: str) -> RequestObservation:
        """End a request now; what is settled of its KV stays in the tree.

        Raises:
            UsageError: no such request is running or waiting.
        """
        if self._books.are_torn:
            self._mend()
        request = self._requests.get(request_id)
        if request is None:
            raise UsageError(f"no request {request_id} is waiting or running")
        with self._books:
            if request.finish_reason is None:
                request.finish_reason = "aborted"
                if request.state is RequestState.RUNNING:
                    self._release(request)
                request.move_to(RequestState.FINISHED)
                self.scheduler.retire(request)
            self._requests = {n: r for n, r in self._requests.items() if r is not request}
            self._audit([])
            return request.observe(self.clock.now_s())

    def refuse(self, request: GenerationRequest, error: str) -> RequestObservation:
        """The observation of a request that `add` would not take."""
        now_s = self.clock.now_s()
        refused = EngineRequest(
            request,
            arrival=self._num_arrivals,
            rule=self._rule(request, None),
            replay=None,
            added_s=now_s,
        )
        refused.fail(error)
        return refused.observe(now_s)

    def close(self) -> None:
        """Give the pools back; the engine can't be used afterwards."""
        self.abort_all()
        del self.runner, self.target_pool, self.draft_pool

    def abort_all(self) -> list[RequestObservation]:
        """End every request now; one that a broken step had ended keeps its reason."""
        if self._books.are_torn:
            self._mend()
        return [self.abort(request_id) for request_id in list(self._requests)]

    # --- a step that was broken off -----------------------------------------------------------

    def _mend(self) -> None:
        """Go on after a broken step: pages and tree can't be trusted, tokens and reasons can."""
        unreported = {request.request_id: request for request in self._ended}
        self._requests = {**unreported, **self._requests}
        self._ended = []
        self._empty_books()
        for request in self._requests.values():
            request.recover()
            if request.finish_reason is None:
                self.scheduler.queue(request)
        self._books.are_torn = False

    # --- after the forward --------------------------------------------------------------------

    def _settle(self, result: RowResult) -> None:
        """Checkpoint where a step asks for it; a request that has ended gives everything back."""
        request = result.row.request
        if request.finish_reason is not None:
            self._release(request)
            request.move_to(RequestState.FINISHED)
            self.scheduler.retire(request)
        elif isinstance(result.row, PrefillRow):
            self.storage.checkpoint(request)

    def _release(self, request: EngineRequest) -> None:
        self.storage.checkpoint(request)
        self.storage.detach(request)

    def _audit(self, results: Sequence[RowResult]) -> None:
        """Check every law; slots that `results` wrote must be their requests' own."""
        if not self.config.audit:
            return
        audit(
            self.storage.pages,
            self.storage.cache,
            self.storage.geometry,
            [self.storage.owned_view(request) for request in self.scheduler.running],
            {result.row.request.request_id: result.wrote for result in results},
        )

    # --- adding -------------------------------------------------------------------------------

    def _rule(self, request: GenerationRequest, replay: Sequence[int] | None) -> StopRule:
        limit = request.max_new_tokens
        return StopRule(
            stop_token_ids=frozenset(request.stop_token_ids),
            stop_strings=request.stop_strings,
            max_output_tokens=limit if replay is None else min(limit, len(replay)),
            max_known_tokens=self.config.context_length,
            decode=self.decode,
        )

    def _check_sampling(self, request: GenerationRequest) -> None:
        draws_drafts = request.sampling is not None and request.sampling.draws_drafts
        if draws_drafts and not self.runner.room.shape.is_chain:
            raise UsageError(
                f"request {request.request_id}: drafts are drawn in chains; top-k "
                f"{self.runner.room.shape.topk} is a tree"
            )

    def _check_token_ids(self, request: GenerationRequest) -> None:
        vocab_size = self.models.target.vocab_size
        for position, token_id in enumerate(request.prompt_token_ids):
            if not 0 <= token_id < vocab_size:
                raise UsageError(
                    f"request {request.request_id}: token {token_id} at position {position} is "
                    f"outside the target's vocabulary of {vocab_size}"
                )
