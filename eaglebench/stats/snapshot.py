"""From a run to the integers it is judged by."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from statistics import fmean, stdev

from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.records.measured import MeasuredBlock, MeasuredRun, MeasuredTurn
from eaglebench.records.snapshot import PPM, ArmCounts, ArmNoise, QuestionCounts, Snapshot
from eaglebench.stats.acceptance import accepted_at, answered, by_arm, pool, speed
from eaglebench.stats.throughput import estimate_ratio, pass_log_ratios
from eaglebench.stats.trust import doubts_of

DIGEST_LENGTH = 8


def make_snapshot(run: MeasuredRun, workload: Mapping[str, object]) -> Snapshot:
    """The snapshot of a run: counts of its first pass, times of all.

    `workload` are those of its options that decide what is computed.
    """
    first = by_arm(turn for turn in run.turns if turn.pass_index == 0)
    doubts = doubts_of(run)
    return Snapshot(
        name=run.run_id,
        suite=str(run.suite["name"]),
        suite_version=int(run.suite["version"]),
        suite_sha256=str(run.suite.get("sha256") or ""),
        workload={**workload, "dtype": run.models["dtype"]},
        exact=run.environment.get("exact", {}),
        timing=run.environment.get("timing", {}),
        created_from=_commit(run),
        reason=None,
        is_complete=run.status == "done",
        questions_sha256=run.suite.get("questions_sha256"),
        arms=tuple(
            replace(
                _arm(turns, run.blocks, *name),
                doubts=tuple(doubt for doubt in doubts if (doubt.cell_id, doubt.arm) == name),
            )
            for name, turns in first.items()
        ),
    )


def question_counts(turns: Iterable[MeasuredTurn]) -> tuple[QuestionCounts, ...]:
    """Questions of one cell and arm in the order in which they ended; failed turns are left out."""
    grouped: dict[str, list[MeasuredTurn]] = {}
    for turn in answered(turns):
        grouped.setdefault(turn.question_id, []).append(turn)
    sums = {name: pool(mine) for name, mine in grouped.items()}
    return tuple(
        QuestionCounts(
            question_id=question_id,
            emitted=counts.emitted,
            verify_steps=counts.verify_steps,
            output_sha=_digest([turn.output_token_ids for turn in mine]),
            accept_sha=_digest([turn.acceptance for turn in mine]),
            prompts_sha=_short(mine[0].question_sha256),
            drafts_sha=_drafts(mine),
        )
        for question_id, mine in grouped.items()
        if (counts := sums[question_id]).emitted is not None and counts.verify_steps is not None
    )


def _arm(
    turns: Sequence[MeasuredTurn], blocks: Sequence[MeasuredBlock], cell_id: str, arm: str
) -> ArmCounts:
    counts, positions = pool(turns), accepted_at(turns)
    return ArmCounts(
        cell_id=cell_id,
        arm=arm,
        counters={n: v for n, v in counts.as_dict().items() if v is not None},
        num_drafts=counts.num_drafts or 0,  # no positions without drafts that were told
        # without the records of all steps the positions are not known
        accepted_at=positions if sum(positions) == counts.accepted else (),
        failed=sum(turn.error is not None for turn in turns),
        questions=question_counts(turns),
        noise=_noise(blocks, cell_id, arm),
    )


def _noise(blocks: Sequence[MeasuredBlock], cell_id: str, arm: str) -> ArmNoise | None:
    if arm == BASELINE_ARM:
        return None
    estimate = estimate_ratio(pass_log_ratios(blocks, cell_id, arm, BASELINE_ARM))
    rate = speed(by_arm(blocks).get((cell_id, arm), []))
    if estimate is None or estimate.error is None or rate is None:
        return None
    return ArmNoise(
        log_ratio_ppm=round(estimate.log_ratio * PPM),
        pass_sd_ppm=round(estimate.error * estimate.passes**0.5 * PPM),
        passes=estimate.passes,
        info_tok_s=round(rate.tokens_per_s, 1),
    )


def counts_of(snapshot: Snapshot) -> dict[tuple[str, str], ArmCounts]:
    """Everything but times, which no two runs share."""
    return {arm.key: replace(arm, noise=None) for arm in snapshot.arms}


def with_runs(snapshot: Snapshot, others: Sequence[Snapshot]) -> Snapshot:
    """The snapshot of a run with the noise of several: how far whole runs of the same work differ."""
    theirs = [{arm.key: arm.noise for arm in other.arms} for other in others]
    arms = []
    for arm in snapshot.arms:
        known = [noise for run in theirs if (noise := run.get(arm.key)) is not None]
        is_known = arm.noise is not None and len(known) == len(others)
        arms.append(replace(arm, noise=_together([arm.noise, *known])) if is_known else arm)
    return replace(snapshot, arms=tuple(arms))


def _together(noises: Sequence[ArmNoise | None]) -> ArmNoise:
    """Noise of several runs: the mean ratio, its scatter over runs, the worst scatter of passes."""
    known = [noise for noise in noises if noise is not None]
    ratios = [noise.log_ratio_ppm for noise in known]
    return ArmNoise(
        log_ratio_ppm=round(fmean(ratios)),
        pass_sd_ppm=max(noise.pass_sd_ppm for noise in known),
        passes=min(noise.passes for noise in known),
        info_tok_s=round(fmean(noise.info_tok_s for noise in known), 1),
        runs=len(known),
        run_sd_ppm=round(stdev(ratios)) if len(ratios) > 1 else None,
    )


def _drafts(turns: Sequence[MeasuredTurn]) -> str | None:
    """Digest of all drafts with the shape of their trees; None where a step was not told."""
    for turn in turns:
        if turn.accepted_per_step is None or len(turn.steps) < len(turn.accepted_per_step):
            return None
    steps = [step for turn in turns for step in turn.steps]
    return _digest([part for step in steps for part in (step.drafted_ids, step.parents)])


def _short(digest: str | None) -> str | None:
    return None if digest is None else digest[:DIGEST_LENGTH]


def _commit(run: MeasuredRun) -> str:
    if run.git is None or not run.git.get("sha"):
        return "unknown"
    return f"{str(run.git['sha'])[:12]}{'-dirty' if run.git.get('dirty') else ''}"


def _digest(numbers: Sequence[Sequence[int | None]]) -> str:
    text = ";".join(",".join(map(str, row)) for row in numbers)
    return sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
