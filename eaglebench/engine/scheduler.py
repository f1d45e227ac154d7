"""Who runs in the next step: decode rows first, then chunks, then newcomers.

Requests are served in order of arrival. Scheduling reads no clock and no random number, so the
same requests give the same steps. Under pool pressure the youngest running request is preempted;
nobody drafts fewer tokens because of it. A request that is alone and still finds no room has hit
the wall of the pool and ends with `capacity`.
"""

from bisect import insort

from eaglebench.engine.config import EngineConfig
from eaglebench.engine.plan import PrefillRow, Row, StepPlan, VerifyRow
from eaglebench.engine.pool_room import PoolRoom
from eaglebench.engine.request import EngineRequest, RequestState
from eaglebench.engine.storage import KVStorage
from eaglebench.errors import UsageError
from eaglebench.records.generation import TOO_LONG_HINT


class Scheduler:
    """Waiting and running requests, both ordered by arrival."""

    def __init__(self, config: EngineConfig, storage: KVStorage, room: PoolRoom) -> None:
        self.knobs = config.knobs
        self.storage = storage
        self.room = room
        self.waiting: list[EngineRequest] = []
        self.running: list[EngineRequest] = []

    @property
    def has_room(self) -> bool:
        """Whether one more request could start at once."""
        return len(self.waiting) + len(self.running) < self.knobs.parallel

    def check(self, request: EngineRequest) -> None:
        """Refuse a request that can never run.

        Raises:
            UsageError: it can never run; the message names the two numbers.
        """
        num_prompt = request.num_prompt_tokens
        if num_prompt == 0:
            raise UsageError(f"request {request.request_id} has an empty prompt")
        obstacle = self.room.obstacle(num_prompt, request.rule.max_output_tokens)
        if obstacle is not None:
            raise UsageError(obstacle, hint=TOO_LONG_HINT)

    def plan(self) -> StepPlan:
        """Reserve everything the next step needs."""
        plan = StepPlan()
        for request in list(self.running):
            if request.state is RequestState.RUNNING and not request.is_prefilling:
                self._plan_verify(plan, request)
        budget = self.knobs.chunked_prefill_size
        for request in list(self.running):
            if request.state is RequestState.RUNNING and request.is_prefilling:
                budget = self._plan_prefill(plan, request, budget)
        self._admit(plan, budget)
        return plan

    def queue(self, request: EngineRequest) -> None:
        """Let a request wait that holds no pages and can run: a new one, or one that has run."""
        insort(self.waiting, request, key=_arrival)

    def retire(self, request: EngineRequest) -> None:
        """Take a finished or aborted request off the lists; its pages are the caller's affair."""
        if request in self.running:
            self.running.remove(request)
        if request in self.waiting:
            self.waiting.remove(request)

    def preempt(self, request: EngineRequest) -> None:
        """Take all pages from a running request and queue it again."""
        self.storage.checkpoint(request)
        self.storage.detach(request)
        request.tally.preemptions += 1
        request.move_to(RequestState.WAITING)
        self.running.remove(request)
        self.queue(request)

    # --- one row ------------------------------------------------------------------------------

    def _num_lookahead(self, row: Row) -> int:
        """Slots past a row's own for the proposal that follows it."""
        request = row.request
        if request.rule.max_output_tokens <= 1 and not request.has_sampled:
            return 0
        return self.room.draft.num_lookahead(row.end, row.committed)

    def _plan_verify(self, plan: StepPlan, request: EngineRequest) -> None:
        row = VerifyRow(request)
        if self._reserve(plan, request, row.num_tokens, self._num_lookahead(row)):
            plan.verify.append(row)

    def _plan_prefill(
        self, plan: StepPlan, request: EngineRequest, budget: int | None
    ) -> int | None:
        """Plan the next chunk of a running request; returns the budget that is left."""
        row = self._chunk(request, budget)
        if row.num_tokens <= 0:
            return budget
        lookahead = self._num_lookahead(row) if row.completes else 0
        if not self._reserve(plan, request, row.num_tokens, lookahead):
            return budget
        plan.prefill.append(row)
        return None if budget is None else budget - row.num_tokens

    def _chunk(self, request: EngineRequest, budget: int | None) -> PrefillRow:
        """The next chunk, of at most `budget` tokens.

        It may end anywhere: checkpoints floor to the page by themselves, and the token after it is
        known, so its last slot is settled.
        """
        start, end = request.num_written, request.prefill_end
        return PrefillRow(request, start, end if budget is None else min(end, start + budget))

    def _admit(self, plan: StepPlan, budget: int | None) -> None:
        """Start waiting requests while there are rows, budget and pages; first come first."""
        while self.waiting and len(self.running) < self.knobs.parallel and budget != 0:
            request = self.waiting[0]
            self.storage.attach(request)
            if not self._fits_whole(request):
                self.storage.detach(request)
                if not self.running:
                    self._end_at_wall(plan, request)
                    continue
                return
            self.waiting.pop(0)
            request.move_to(RequestState.RUNNING)
            insort(self.running, request, key=_arrival)
            request.tally.add_hit(request.num_written)
            budget = self._plan_prefill(plan, request, budget)

    def _fits_whole(self, request: EngineRequest) -> bool:
        """Whether the rest of the prefill and its look-ahead could be had now.

        Looking at the whole prompt and not only at the first chunk keeps a newcomer from being
        started only to be preempted a chunk later.
        """
        rest = PrefillRow(request, request.num_written, request.prefill_end)
        demand = self.storage.demand(request, rest.num_tokens, self._num_lookahead(rest))
        return self.storage.fits(request, demand)

    # --- pressure -----------------------------------------------------------------------------

    def _reserve(
        self, plan: StepPlan, request: EngineRequest, num_new: int, num_lookahead: int
    ) -> bool:
        """Reserve, preempting the youngest others; False if the request itself had to go."""
        demand = self.storage.demand(request, num_new, num_lookahead)
        while not self.storage.try_reserve(request, demand):
            victim = self.running[-1]
            if victim is request and len(self.running) == 1:
                self._end_at_wall(plan, request)
                return False
            plan.drop(victim)
            self.preempt(victim)
            if victim is request:
                return False
        return True

    def _end_at_wall(self, plan: StepPlan, request: EngineRequest) -> None:
        """End a request that can't get any further even with the whole pool to itself."""
        request.finish_reason = "capacity"
        plan.ended.append(request)
        if request.state is RequestState.RUNNING:
            self.storage.checkpoint(request)
            self.storage.detach(request)
        request.move_to(RequestState.FINISHED)
        self.retire(request)


def _arrival(request: EngineRequest) -> int:
    return request.arrival
