"""The engine's bookkeeping without models: real scheduler, storage and requests, no forward.

Every step is planned and committed as the engine does it; tokens are told by the test. Proposals
have the shape that the room allows, their tokens never matter.
"""

from collections.abc import Sequence

import hypothesis.strategies as st
import numpy as np

from eaglebench.engine.config import EngineConfig
from eaglebench.engine.plan import PrefillRow, StepPlan, VerifyRow
from eaglebench.engine.policy import EnginePolicy
from eaglebench.engine.pool_room import PoolRoom
from eaglebench.engine.request import PENDING_ROOT, EngineRequest, RequestState
from eaglebench.engine.scheduler import Scheduler
from eaglebench.engine.storage import KVStorage
from eaglebench.kv.audit import audit
from eaglebench.records.knobs import PREALLOCATIONS, EngineKnobs
from eaglebench.spec.proposal import NOTHING_PROPOSED, ROOT, Proposal
from eaglebench.spec.shape import NO_DRAFT, DraftRoom, DraftShape
from tests.engines import make_request, make_rule

TOKEN = 7
"""Delivered by default."""


class DryEngine:
    """Scheduler and storage under test, and the steps that they plan."""

    def __init__(
        self,
        knobs: EngineKnobs,
        *,
        policy: EnginePolicy | None = None,
        context_length: int = 512,
        window: int | None = None,
    ) -> None:
        self.config = EngineConfig(
            knobs=knobs,
            policy=policy or EnginePolicy(),
            context_length=context_length,
            window=window,
        )
        shape = NO_DRAFT
        if knobs.num_steps:
            shape = DraftShape(knobs.num_steps, knobs.eagle_topk, knobs.num_draft_nodes)
        self.room = PoolRoom(self.config, DraftRoom(shape, context_length))
        self.storage = KVStorage(self.config, self.room)
        self.scheduler = Scheduler(self.config, self.storage, self.room)
        self.requests: dict[str, EngineRequest] = {}
        self.ended: list[EngineRequest] = []

    def make(self, name: str, prompt: Sequence[int], max_new_tokens: int = 24) -> EngineRequest:
        """A request of a new arrival."""
        request = make_request(name, prompt, max_new_tokens=max_new_tokens)
        made = EngineRequest(
            request,
            arrival=len(self.requests),
            rule=make_rule(request, self.config.context_length),
            replay=None,
            added_s=0.0,
        )
        self.requests[name] = made
        return made

    def add(self, name: str, prompt: Sequence[int], max_new_tokens: int = 24) -> EngineRequest:
        """Queue a request; raises as the scheduler does."""
        made = self.make(name, prompt, max_new_tokens)
        self.scheduler.check(made)
        self.scheduler.queue(made)
        return made

    def step(self, tokens: Sequence[int] = (TOKEN,)) -> StepPlan:
        """Plan a step and commit it: verify rows deliver `tokens`, prefills the first of them."""
        plan = self.scheduler.plan()
        self.ended += plan.ended
        for verified in plan.verify:
            self._deliver(verified.request, tokens)
        for chunk in plan.prefill:
            self._commit(chunk, tokens)
        for row in plan.rows:
            self._settle(row)
        for request in self.scheduler.running:
            self.storage.slide(request)
        self.audit()
        return plan

    def audit(self) -> None:
        """Every law of the books."""
        audit(
            self.storage.pages,
            self.storage.cache,
            self.storage.geometry,
            [self.storage.owned_view(request) for request in self.scheduler.running],
        )

    def _commit(self, row: PrefillRow, tokens: Sequence[int]) -> None:
        if row.samples:
            self._deliver(row.request, tokens[:1])
        else:
            row.request.num_written = row.end

    def _deliver(self, request: EngineRequest, tokens: Sequence[int]) -> None:
        room = min(
            request.rule.max_output_tokens - request.num_output,
            self.config.context_length - request.num_known,
        )
        request.append(tokens[:room])
        request.num_written = request.num_known - PENDING_ROOT
        if request.num_known >= self.config.context_length:
            request.finish_reason = "context"
        elif request.num_output >= request.rule.max_output_tokens:
            request.finish_reason = "length"

    def _settle(self, row: PrefillRow | VerifyRow) -> None:
        request = row.request
        request.draft_valid_len = request.num_written
        if request.finish_reason is not None:
            self.storage.checkpoint(request)
            self.storage.detach(request)
            request.move_to(RequestState.FINISHED)
            self.scheduler.retire(request)
            self.ended.append(request)
            return
        if not request.is_prefilling:
            request.proposal = proposal_of(self.room.draft.after(request.num_written))
        if isinstance(row, PrefillRow):
            self.storage.checkpoint(request)


def proposal_of(shape: DraftShape) -> Proposal:
    """A proposal as large and as deep as the shape allows."""
    count = shape.num_nodes if shape.num_levels else 0
    if not count:
        return NOTHING_PROPOSED
    if shape.is_chain:
        return Proposal((TOKEN,) * count, (1.0,) * count)
    deep = [node - 1 if node else ROOT for node in range(min(count, shape.num_levels))]
    return Proposal((TOKEN,) * count, (1.0,) * count, tuple(deep + [ROOT] * (count - len(deep))))


def tokens_of(length: int, seed: int = 0) -> tuple[int, ...]:
    """Tokens of a text of its own."""
    drawn = np.random.default_rng(seed).integers(0, 1000, size=length)
    return tuple(int(token) for token in drawn)


@st.composite
def pools(draw: st.DrawFn) -> tuple[EngineKnobs, int, int | None]:
    """Knobs with a small pool, a context length, and a window or none."""
    steps = draw(st.integers(0, 6))
    topk = draw(st.sampled_from([1, 1, 2, 4])) if steps else 1
    most = topk + (steps - 1) * topk**2 if topk > 1 else steps
    nodes = draw(st.integers(1, min(most, 24))) if topk > 1 else steps
    page_size = draw(st.sampled_from([1, 2, 4, 16]))
    knobs = EngineKnobs(
        page_size=page_size,
        num_steps=steps,
        eagle_topk=topk,
        num_draft_tokens=nodes + 1,
        chunked_prefill_size=draw(st.sampled_from([None, 3, 16, 40])),
        preallocation=draw(st.sampled_from(PREALLOCATIONS)),
        preallocate_tokens=draw(st.sampled_from([1, 16, 64])),
        max_total_tokens=draw(st.integers(page_size, 160)),
        swa_full_tokens_ratio=draw(st.sampled_from([0.2, 0.5, 1.0])),
    )
    context_length = draw(st.integers(2, 200))
    window = draw(st.sampled_from([None, None, 1, 5, 33]))
    return knobs, context_length, window
