"""The story of one step: forward, accept, cut, commit, draft extend, propose, checkpoint.

The plan comes from the scheduler and has reserved every slot, so nothing here can run short.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.engine.batch import Batch, WindowView, assemble, num_logits
from eaglebench.engine.config import EngineConfig
from eaglebench.engine.models import Models
from eaglebench.engine.plan import PrefillRow, Row, StepPlan, VerifyRow
from eaglebench.engine.request import PENDING_ROOT, EngineRequest
from eaglebench.engine.soundness import head_failure, target_failure
from eaglebench.engine.target_choices import choose, make_drawing
from eaglebench.kv.pool import KVPool, LayerPools
from eaglebench.kv.window import WindowSlots
from eaglebench.model.target import TargetOutput
from eaglebench.records.observation import VerifyStep
from eaglebench.spec.accept import accept_chosen
from eaglebench.spec.drafter import ChainDrafter, Drafter, ExtendRow
from eaglebench.spec.shape import NO_DRAFT, DraftShape
from eaglebench.spec.tree_drafter import TreeDrafter

_NO_SLOTS = np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class RowResult:
    """What a row's tokens led to.

    Attributes:
        row: the row.
        feature_start: where the row's tokens begin in the batch.
        first_new_slot: first slot committed by this step.
        wrote: slots written by this step, for the audit.
        new_ids: tokens delivered, after cutting.
        seam_guess: the target's guess at a chunk seam, where an arm wants it.
        num_proposed_slots: leading committed slots that hold draft KV of the last proposal.
        kept_rows: batch rows of the committed tokens, counted from `feature_start`.
    """

    row: Row
    feature_start: int
    first_new_slot: int
    wrote: NDArray[np.int64]
    new_ids: tuple[int, ...] = ()
    seam_guess: int | None = None
    num_proposed_slots: int = 0
    kept_rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))


class StepRunner:
    """Runs planned steps on the models and their pools."""

    def __init__(
        self,
        config: EngineConfig,
        models: Models,
        target_pool: LayerPools,
        draft_pool: KVPool | None,
    ) -> None:
        self.policy = config.policy
        self.window = config.window
        self.models = models
        self.target_pool = target_pool
        self.room = models.draft_room(config.knobs, config.context_length)
        self.drafter: Drafter | None = None
        if models.head is not None and draft_pool is not None:
            kind = ChainDrafter if self.room.shape.is_chain else TreeDrafter
            self.drafter = kind(models.head, draft_pool, models.device)

    def run(self, plan: StepPlan, window_slots: WindowSlots) -> list[RowResult]:
        """Compute the rows of a plan and commit what came out.

        `window_slots` says where window layers keep the KV of a slot.
        """
        batch = assemble(
            plan.rows,
            device=self.models.device,
            backend=self.models.target.attention_backend,
            wants_seam_guess=self.policy.wants_seam_guess and self.drafter is not None,
            window=WindowView(self.window, window_slots) if self.window else None,
        )
        output = self._forward_target(batch)
        results = self._commit(batch, output)
        self._compact(results, window_slots)
        sound = [result for result in results if not result.row.request.has_failed]
        if self.drafter is None or output.aux is None:
            for result in sound:
                request = result.row.request
                request.draft_valid_len = request.num_written  # no head, so nothing to wait for
        elif sound:
            self._draft(self.drafter, sound, output.aux)
        return results

    def _forward_target(self, batch: Batch) -> TargetOutput:
        head = self.models.head
        for row in batch.rows:
            row.request.tally.target_forwards += 1
        return self.models.target.forward(
            batch.token_ids,
            batch.positions,
            batch.layout,
            self.target_pool,
            batch.logit_rows,
            aux_layer_ids=head.aux_layer_ids if head is not None and self.drafter else (),
        )

    # --- accept, cut, commit ------------------------------------------------------------------

    def _commit(self, batch: Batch, output: TargetOutput) -> list[RowResult]:
        ids, gaps, states = _read(batch, output)
        results = []
        for row, start, logit_start, written in zip(
            batch.rows, batch.starts, batch.logit_starts, batch.written, strict=True
        ):
            result = RowResult(row, start, row.request.num_written, written)
            end = logit_start + num_logits(row, wants_seam_guess=batch.wants_seam_guess)
            my_ids, my_gaps = ids[logit_start:end], gaps[logit_start:end]
            failure = target_failure(row, my_gaps, states[start : start + row.num_tokens])
            if failure is not None:
                row.request.fail(failure)
            elif isinstance(row, VerifyRow):
                _commit_verify(result, row, my_ids, my_gaps)
            else:
                _commit_prefill(result, row, my_ids, my_gaps)
            results.append(result)
        return results

    def _compact(self, results: Sequence[RowResult], window_slots: WindowSlots) -> None:
        """Move the KV of accepted tree nodes to the front, where a chain's would be."""
        moves = [_moved_slots(result) for result in results if isinstance(result.row, VerifyRow)]
        sources = np.concatenate([_NO_SLOTS, *(source for source, _ in moves)])
        targets = np.concatenate([_NO_SLOTS, *(target for _, target in moves)])
        if len(sources):
            self.target_pool.move_tokens(sources, targets, window_slots)

    # --- draft extend, propose ----------------------------------------------------------------

    def _draft(self, drafter: Drafter, results: Sequence[RowResult], aux: Tensor) -> None:
        """Settle draft KV of every committed slot, then propose for the rows that go on."""
        rows = [self._extend_row(result) for result in results]
        outcome = drafter.run(rows, aux)
        for index, (result, extend) in enumerate(zip(results, rows, strict=True)):
            request = result.row.request
            request.draft_valid_len = request.num_written
            request.proposal = outcome.proposals[index]
            # scratch slots of a tree lie in no order that a commit could keep
            request.num_proposed_slots = (
                extend.shape.num_scratch_slots if extend.shape.is_chain else 0
            )
            request.tally.draft_forwards += outcome.num_forwards[index]
            result.wrote = np.concatenate([result.wrote, outcome.written[index]])
            num_sound = outcome.num_sound[index]
            failure = head_failure(extend, num_sound, request.proposal)
            if failure is not None:
                request.fail(failure)
                request.draft_valid_len = extend.start + num_sound

    def _extend_row(self, result: RowResult) -> ExtendRow:
        """Slots committed by this step whose draft KV is to be written, and what follows them."""
        request = result.row.request
        end = request.num_written
        start = self.policy.first_slot_to_rewrite(
            first_new_slot=result.first_new_slot,
            end=end,
            num_proposed_slots=result.num_proposed_slots,
        )
        return ExtendRow(
            table=request.held,
            start=start,
            end=end,
            successor_ids=self._successors(result, start, end),
            feature_rows=result.feature_start + result.kept_rows[start - result.first_new_slot :],
            shape=self._shape(result.row),
            drawing=make_drawing(request.request.sampling),
        )

    def _successors(self, result: RowResult, start: int, end: int) -> NDArray[np.int64]:
        """Tokens start + 1 .. end: the next known token after each slot."""
        request = result.row.request
        successors = request.known_tokens[start + 1 : end + 1].astype(np.int64)
        if isinstance(result.row, PrefillRow) and not result.row.completes:
            successors[-1] = self.policy.seam_successor(
                int(successors[-1]), result.seam_guess, int(request.known_tokens[-1])
            )
            request.seams.append((end - 1, int(successors[-1])))
        return successors

    def _shape(self, row: Row) -> DraftShape:
        """What to propose for a row: nothing in the middle of a prompt or after the end."""
        request = row.request
        if request.finish_reason is not None or request.is_prefilling:
            return NO_DRAFT
        return self.room.after(request.num_written)


def _read(batch: Batch, output: TargetOutput) -> tuple[list[int], list[float], list[bool]]:
    """Chosen ids and gaps of the batch's logits, and which tokens have a finite state."""
    states = output.is_finite
    if not len(batch.logit_rows):
        return [], [], states.tolist()
    choices = choose(batch, output.logits)
    numbers = torch.cat([choices.gaps.double(), states.double()]).tolist()  # one wait for both
    num_gaps = len(batch.logit_rows)
    return choices.ids.tolist(), numbers[:num_gaps], [bool(flag) for flag in numbers[num_gaps:]]


def _commit_verify(
    result: RowResult, row: VerifyRow, ids: Sequence[int], gaps: Sequence[float]
) -> None:
    """Accept, cut and deliver; slots of the root and of kept drafts become permanent."""
    request = row.request
    proposal = request.proposal
    target_ids = _replayed(request, ids)
    acceptance = accept_chosen(proposal, target_ids)
    kept = request.watch.cut(acceptance.emitted_ids)
    request.steps.append(
        VerifyStep(
            position=row.start,
            drafted_ids=proposal.token_ids,
            target_ids=tuple(target_ids),
            accepted=acceptance.num_accepted,
            emitted=kept.num_kept,
            target_gaps=tuple(gaps),
            draft_gaps=proposal.gaps,
            parents=proposal.parents,
        )
    )
    result.num_proposed_slots = min(request.num_proposed_slots, acceptance.num_accepted)
    # the root, then accepted nodes; tokens that were cut and the bonus have no slot yet
    rows = np.array([0, *(node + 1 for node in acceptance.path)], dtype=np.int64)
    result.kept_rows = rows[: kept.num_kept]
    _deliver(result, acceptance.emitted_ids[: kept.num_kept])
    request.finish_reason = kept.reason  # last: a request with a reason is whole, see `recover`


def _commit_prefill(
    result: RowResult, row: PrefillRow, ids: Sequence[int], gaps: Sequence[float]
) -> None:
    """The chunk's slots become permanent; at the prompt's end the first token is chosen."""
    request = row.request
    request.tally.prefill_tokens_computed += row.num_tokens
    result.kept_rows = np.arange(row.num_tokens, dtype=np.int64)
    if not row.samples:
        request.num_written = row.end
        if not row.completes and ids:
            result.seam_guess = ids[0]
        return
    target_ids = _replayed(request, ids[:1])
    kept = request.watch.cut(target_ids)
    request.prefill_gap = gaps[0]
    request.tally.prefill_sampled += kept.num_kept
    _deliver(result, target_ids)
    request.finish_reason = kept.reason


def _deliver(result: RowResult, token_ids: Sequence[int]) -> None:
    """Append tokens; all known tokens but the pending root are written now (I3)."""
    request = result.row.request
    result.new_ids = tuple(token_ids)
    request.append(token_ids)
    request.num_written = request.num_known - PENDING_ROOT


def _moved_slots(result: RowResult) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Slots that committed tokens were written to and belong in, where the two differ."""
    table, first = result.row.request.held, result.first_new_slot
    rows = result.kept_rows
    moved = np.flatnonzero(rows != np.arange(len(rows)))
    if not len(moved):
        return _NO_SLOTS, _NO_SLOTS
    slots = table.slots(first, first + int(rows[-1]) + 1)
    return slots[rows[moved]], slots[moved]


def _replayed(request: EngineRequest, ids: Sequence[int]) -> list[int]:
    """The target's choices; under a replay the stored tokens, as far as they go.

    After a node of depth d the stored token is the d-th one from here on.
    """
    if request.replay is None:
        return list(ids)
    depths = request.proposal.depths()[: len(ids)]
    stored = [request.num_output + int(depth) for depth in depths]
    return [
        request.replay[index] if index < len(request.replay) else chosen
        for index, chosen in zip(stored, ids, strict=True)
    ]
