"""From stored lines to what comparison and reports look at."""

from collections.abc import Sequence
from math import nan

from eaglebench.records.knobs import DraftKnobs
from eaglebench.records.measured import MeasuredBlock, MeasuredRun, MeasuredTurn
from eaglebench.records.observation import StepTimes, VerifyStep
from eaglebench.store.records import BlockRecord, StepRecord, TurnRecord
from eaglebench.store.run_folder import RunFolder

_TIMES = tuple(StepTimes.__dataclass_fields__)


def measured_turns(folder: RunFolder) -> list[MeasuredTurn]:
    """All turns of a run, every pass, with their verify steps."""
    steps = folder.steps()
    return [
        # A turn that ran again after a crash may have been longer before; its line counts.
        _turn(record, steps.get(record.key, [])[: record.counters.verify_steps])
        for record in folder.turns()
    ]


def measured_run(folder: RunFolder) -> MeasuredRun:
    """A whole run.

    Raises:
        InputFileError: the folder's manifest or lines are broken.
    """
    manifest = folder.manifest()
    environment = folder.environment()
    return MeasuredRun(
        run_id=folder.run_id,
        status=manifest["status"],
        started=manifest.get("started") or "",
        suite=manifest["suite"],
        config=manifest["config"],
        models=manifest["models"],
        git=manifest.get("git"),
        environment={name: environment.get(name, {}) for name in ("exact", "timing", "info")},
        tau=manifest.get("tau") or {},
        turns=tuple(measured_turns(folder)),
        blocks=tuple(measured_blocks(folder)),
    )


def measured_blocks(folder: RunFolder) -> list[MeasuredBlock]:
    """All timed blocks of a run."""
    return [_block(record) for record in folder.blocks()]


def _turn(record: TurnRecord, steps: Sequence[StepRecord]) -> MeasuredTurn:
    return MeasuredTurn(
        cell_id=record.cell_id,
        arm=record.arm,
        pass_index=record.pass_index,
        question_id=record.question_id,
        turn=record.turn,
        is_measured=record.measured,
        page_size=record.page_size,
        draft=DraftKnobs(record.num_steps, record.eagle_topk, record.num_draft_tokens),
        preallocation=record.preallocation,
        prompt_token_ids=tuple(record.prompt_token_ids),
        output_token_ids=tuple(record.output_token_ids),
        accepted_per_step=tuple(record.accepted_per_step),
        steps=tuple(
            VerifyStep(
                position=step.position,
                drafted_ids=tuple(step.drafted_ids),
                target_ids=tuple(step.target_ids),
                accepted=step.accepted,
                emitted=step.emitted,
                target_gaps=_gaps(step.target_gaps),
                draft_gaps=_gaps(step.draft_gaps),
                parents=tuple(step.parents),
            )
            for step in steps
        ),
        prefill_gap=record.prefill_gap,
        counters=record.counters,
        finish_reason=record.finish_reason,
        error=record.error,
        question_sha256=record.question_sha256,
    )


def _gaps(stored: Sequence[float | None]) -> tuple[float, ...]:
    """Gaps of a step; one that could not be stored is smaller than no threshold."""
    return tuple(nan if gap is None else gap for gap in stored)


def _block(record: BlockRecord) -> MeasuredBlock:
    return MeasuredBlock(
        cell_id=record.cell_id,
        arm=record.arm,
        pass_index=record.pass_index,
        block=record.block,
        output_tokens=record.output_tokens,
        verify_steps=record.verify_steps,
        wall_s=record.wall_s,
        parallel=record.parallel,
        times=StepTimes(**{name: getattr(record, name) for name in _TIMES}),
    )
