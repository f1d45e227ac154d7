"""One request inside the engine: its tokens, its lengths and its state.

    t_0 ........ t_{L-1} | t_L ........ t_{N-1}        N known tokens, L of them prompt
    slot 0 ................. slot S-1                  S written slots (target KV)
    [ tree-owned )[ private                  )[ look-ahead )

I1  tree_owned_slots <= num_written <= slots of the block table.
I2  draft_valid_len == num_written (with a head), never more than N - 1.
I3  while decoding S == N - 1: the last known token is the pending root.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eaglebench.engine.stopping import StopRule, StopWatch
from eaglebench.engine.tally import Tally
from eaglebench.errors import InvariantError
from eaglebench.kv.cache import PrefixLock
from eaglebench.kv.tables import BlockTable
from eaglebench.records.generation import FinishReason, GenerationRequest
from eaglebench.records.observation import RequestObservation, RequestTimes, VerifyStep
from eaglebench.spec.proposal import NOTHING_PROPOSED

PENDING_ROOT = 1
"""Known tokens whose KV is not written while decoding: the root of the next verify step."""


class RequestState(Enum):
    """Where a request is in its life."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


_LEGAL = {
    RequestState.WAITING: {RequestState.RUNNING, RequestState.FINISHED},
    RequestState.RUNNING: {RequestState.WAITING, RequestState.FINISHED},
    RequestState.FINISHED: set[RequestState](),
}


class _Mark(NamedTuple):
    """What a step may change and `recover` goes back to."""

    num_known: int
    num_steps: int
    prefill_sampled: int
    prefill_gap: float | None


class EngineRequest:
    """A request as the engine keeps it; `arrival` orders requests, earlier ones go first."""

    def __init__(
        self,
        request: GenerationRequest,
        *,
        arrival: int,
        rule: StopRule,
        replay: Sequence[int] | None,
        added_s: float,
    ) -> None:
        self.request = request
        self.arrival = arrival
        self.rule = rule
        self.replay = replay
        self.state = RequestState.WAITING
        self.tally = Tally()
        self.steps: list[VerifyStep] = []
        self.seams: list[tuple[int, int]] = []  # last slot of a middle chunk, what followed it
        self.finish_reason: FinishReason | None = None
        self.error: str | None = None
        self.prefill_gap: float | None = None
        self.num_prompt_tokens = len(request.prompt_token_ids)
        self.watch = StopWatch(rule, self.num_prompt_tokens)
        self._tokens = np.array(request.prompt_token_ids, dtype=np.int32)
        self._num_known = self.num_prompt_tokens
        self.mark()
        self.namespace: str | None = None
        self.drop_pages()
        self._added_s = added_s
        self._admitted_s: float | None = None
        self._prefilled_s: float | None = None

    # --- tokens -------------------------------------------------------------------------------

    @property
    def request_id(self) -> str:
        """The caller's name for this request."""
        return self.request.request_id

    @property
    def num_known(self) -> int:
        """Known tokens N: the prompt and everything delivered."""
        return self._num_known

    @property
    def num_output(self) -> int:
        """Tokens delivered."""
        return self._num_known - self.num_prompt_tokens

    @property
    def known_tokens(self) -> NDArray[np.int32]:
        """[N] int32, a view."""
        return self._tokens[: self._num_known]

    @property
    def output_ids(self) -> list[int]:
        """Tokens delivered, in order."""
        ids: list[int] = self._tokens[self.num_prompt_tokens : self._num_known].tolist()
        return ids

    def append(self, token_ids: Sequence[int]) -> None:
        """Deliver tokens."""
        end = self._num_known + len(token_ids)
        if end > len(self._tokens):
            room = max(2 * len(self._tokens), end)
            grown = np.zeros(room, dtype=np.int32)
            grown[: self._num_known] = self.known_tokens
            self._tokens = grown
        self._tokens[self._num_known : end] = token_ids
        self._num_known = end

    # --- lengths ------------------------------------------------------------------------------

    @property
    def has_sampled(self) -> bool:
        """Whether the prompt has been completed by a first token: a resume does not sample."""
        return self.num_output > 0

    @property
    def prefill_end(self) -> int:
        """Slots to write before the request can decode."""
        return self._num_known - PENDING_ROOT if self.has_sampled else self.num_prompt_tokens

    @property
    def is_prefilling(self) -> bool:
        """Whether prompt (or, resumed, known) tokens are still to be computed."""
        return self.num_written < self.prefill_end

    @property
    def hit_cap(self) -> int:
        """Most slots a lookup may give: at least one token is always recomputed."""
        recomputed = 1  # slot prefill_end - 1: for its logits, or resumed for its feature
        return self.prefill_end - recomputed

    @property
    def held(self) -> BlockTable:
        """The block table of a running request."""
        if self.table is None:
            raise InvariantError(f"request {self.request_id} is not running and holds no pages")
        return self.table

    # --- life ---------------------------------------------------------------------------------

    @property
    def has_failed(self) -> bool:
        """Whether it ended because something went wrong."""
        return self.error is not None

    def fail(self, error: str) -> None:
        """End with `failed`; nothing that was proposed is verified any more."""
        self.error = error
        # after the error: whoever finds a reason finds all that belongs to it, see `recover`
        self.finish_reason = "failed"
        self.drop_proposal()

    def move_to(self, state: RequestState) -> None:
        """Change state.

        Raises:
            InvariantError: a request never goes that way.
        """
        if state not in _LEGAL[self.state]:
            raise InvariantError(f"request {self.request_id}: {self.state} can't become {state}")
        self.state = state

    def mark(self) -> None:
        """Remember where the request stands before a step."""
        self._mark = _Mark(
            self._num_known, len(self.steps), self.tally.prefill_sampled, self.prefill_gap
        )

    def recover(self) -> None:
        """Leave a step that was broken off; the books of pages are new.

        A request that had ended stays so. Any other stands where `mark` found it and waits again,
        as after a preemption.
        """
        self.drop_pages()
        if self.finish_reason is not None:
            self.state = RequestState.FINISHED
            return
        self._num_known = self._mark.num_known
        del self.steps[self._mark.num_steps :]
        self.tally.prefill_sampled = self._mark.prefill_sampled
        self.prefill_gap = self._mark.prefill_gap
        self.watch = StopWatch(self.rule, self.num_prompt_tokens)
        self.watch.cut(self.output_ids)
        if self.state is RequestState.RUNNING:
            self.tally.preemptions += 1
        self.state = RequestState.WAITING

    def drop_pages(self) -> None:
        """Hold none: before an admission, and once the caller has given pages and lock back."""
        self.table: BlockTable | None = None
        self.lock: PrefixLock | None = None
        self.tree_owned_slots = 0
        self.num_slid_pages = 0  # leading pages whose window pages were given back
        self.num_written = 0
        self.draft_valid_len = 0
        self.drop_proposal()

    def drop_proposal(self) -> None:
        """Have nothing proposed."""
        self.proposal = NOTHING_PROPOSED
        self.num_proposed_slots = 0  # slots past N - 1 that hold draft KV of the proposal

    def note_admitted(self, now_s: float) -> None:
        """Remember when the request first ran."""
        if self._admitted_s is None:
            self._admitted_s = now_s

    def note_prefilled(self, now_s: float) -> None:
        """Remember when the prompt was first complete."""
        if self._prefilled_s is None:
            self._prefilled_s = now_s

    def observe(self, now_s: float) -> RequestObservation:
        """What was measured, once the request has ended."""
        if self.finish_reason is None:
            raise InvariantError(f"request {self.request_id} has not ended")
        admitted = now_s if self._admitted_s is None else self._admitted_s
        prefilled = now_s if self._prefilled_s is None else self._prefilled_s
        return RequestObservation(
            request_id=self.request_id,
            output_token_ids=tuple(self.output_ids),
            accepted_per_step=tuple(step.accepted for step in self.steps),
            steps=tuple(self.steps),
            counters=self.tally.freeze(
                prompt_tokens=self.num_prompt_tokens,
                output_tokens=self.num_output,
                steps=self.steps,
            ),
            times=RequestTimes(
                queue_s=admitted - self._added_s,
                prefill_s=prefilled - admitted,
                decode_s=now_s - prefilled,
                total_s=now_s - self._added_s,
            ),
            finish_reason=self.finish_reason,
            prefill_gap=self.prefill_gap,
            error=self.error if self.finish_reason == "failed" else None,
            seam_slots=tuple(slot for slot, _ in self.seams),
            seam_successors=tuple(successor for _, successor in self.seams),
        )
