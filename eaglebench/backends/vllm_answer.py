"""What vLLM told of a request, as an observation: its rows where they were watched, else its counts."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

from eaglebench.errors import EngineError
from eaglebench.records.counters import Counters
from eaglebench.records.generation import FinishReason, GenerationRequest
from eaglebench.records.observation import RequestObservation, RequestTimes, VerifyStep

_ROOT = 1
"""The last known token; drafts stand behind it."""


def observe(
    request: GenerationRequest, ended: Mapping[str, Any], context_length: int
) -> RequestObservation:
    """The observation of a request that has ended.

    Raises:
        EngineError: what it told contradicts itself.
    """
    told = _from_rows(request, ended) if ended["rows"] is not None else _from_counts(ended)
    output, prompt = tuple(ended["output"]), len(request.prompt_token_ids)
    steps, accepted, cached = told["steps"], told["accepted"], ended["cached"]
    total = None if accepted is None else sum(accepted)
    counters = Counters(
        prompt_tokens=prompt,
        output_tokens=len(output),
        cached_tokens=cached,
        prefill_tokens_computed=told["computed"],
        prefill_sampled=told["sampled"],
        verify_steps=told["verify_steps"],
        num_drafts=told["num_drafts"],
        drafted=told["drafted"],
        accepted=total,
        bonus=told["verify_steps"],
        overrun=_overrun(told, total, len(output)),
        target_forwards=told["forwards"],
        preemptions=ended["preemptions"],
    )
    reason = _reason(ended["finish"], prompt + len(output), context_length)
    return RequestObservation(
        request_id=request.request_id,
        output_token_ids=output,
        accepted_per_step=accepted,
        steps=steps,
        counters=counters,
        times=_times(ended["times"]),
        finish_reason=reason,
        prefill_gap=_lead(ended["leads"], 0),
        error="vLLM ended it with an error" if reason == "failed" else None,
        seam_slots=told["seam_slots"],
        seam_successors=told["seam_successors"],
    )


def _from_rows(request: GenerationRequest, ended: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the rows of its steps say."""
    rows = ended["rows"]
    prefill = [row for row in rows if row["is_prefill"]]
    seams = [row for row in prefill if not row["sampled"]]
    steps, delivered = [], 0
    for row in rows:
        if row["is_prefill"]:
            delivered += len(row["sampled"])
        else:
            steps.append(_step(row, ended, delivered))
            delivered += steps[-1].emitted
    carrying = [step for step in steps if step.drafted_ids]
    if ended["accepted"] is not None and [s.accepted for s in carrying] != ended["accepted"]:
        raise EngineError(
            f"request {request.request_id}: vLLM counts other accepted drafts than its steps have"
        )
    successors = [row["successor"] for row in seams]
    return {
        "steps": tuple(steps),
        "accepted": tuple(step.accepted for step in steps),
        "computed": sum(row["end"] - row["start"] for row in prefill),
        "sampled": sum(len(row["sampled"]) for row in prefill),
        "verify_steps": len(steps),
        "num_drafts": len(carrying),
        "drafted": sum(len(step.drafted_ids) for step in steps),
        "forwards": len(rows),
        "seam_slots": tuple(row["end"] - 1 for row in seams),
        "seam_successors": None if None in successors else tuple(successors),
    }


def _step(row: Mapping[str, Any], ended: Mapping[str, Any], delivered: int) -> VerifyStep:
    """A verify step; what the target chose behind a draft that it refused is not told."""
    sampled, drafted = row["sampled"], row["drafted"]
    if -1 in drafted:
        raise EngineError(
            "vLLM plans drafts ahead of their ids here",
            hint="--engine-arg async_scheduling=false, or --engine-arg record_steps=false for counts alone",
        )
    emitted = min(len(sampled), max(len(ended["output"]) - delivered, 0))
    leads, known = row["leads"], len(drafted)
    return VerifyStep(
        position=row["known"] - _ROOT,
        drafted_ids=tuple(drafted),
        target_ids=tuple(sampled),
        accepted=max(len(sampled) - _ROOT, 0),
        emitted=emitted,
        target_gaps=tuple(
            _or_nan(_lead(ended["leads"], delivered + place)) for place in range(len(sampled))
        ),
        draft_gaps=tuple(leads[:known]) if len(leads) >= known else (nan,) * known,
    )


def _from_counts(ended: Mapping[str, Any]) -> dict[str, Any]:
    """What its own counts say: acceptance in order where every step carried drafts."""
    accepted, drafted, sizes = ended["accepted"], ended["drafted"], ended["sizes"]
    verify_steps = max(len(sizes) - 1, 0)
    if accepted is None:
        accepted, drafted = [0] * verify_steps, []
    is_ordered = len(accepted) == verify_steps
    return {
        "steps": (),
        "accepted": tuple(accepted) if is_ordered else None,
        "computed": None,
        "sampled": min(len(sizes), 1),
        "verify_steps": verify_steps if is_ordered else None,
        "num_drafts": sum(count > 0 for count in drafted),
        "drafted": sum(drafted),
        "forwards": None,
        "seam_slots": None,
        "seam_successors": None,
    }


def _overrun(told: Mapping[str, Any], accepted: int | None, output: int) -> int | None:
    """Tokens of verify steps that were cut: what they made, less what was delivered."""
    if accepted is None or told["verify_steps"] is None:
        return None
    made: int = told["sampled"] + accepted + told["verify_steps"]
    return made - output


def _reason(finish: str | None, tokens: int, context_length: int) -> FinishReason:
    reasons: dict[str, FinishReason] = {"stop": "stop", "length": "length", "abort": "aborted"}
    if finish == "length" and tokens >= context_length:
        return "context"
    return reasons.get(finish or "", "failed")


def _times(stamps: Sequence[float | None]) -> RequestTimes:
    """From when it was queued, scheduled, answered first and last; 0 where that was not told."""
    queued, scheduled, first, last = (stamp or 0.0 for stamp in stamps)
    return RequestTimes(
        queue_s=max(scheduled - queued, 0.0),
        prefill_s=max(first - scheduled, 0.0),
        decode_s=max(last - first, 0.0),
        total_s=max(last - queued, 0.0),
    )


def _lead(leads: Sequence[float | None], place: int) -> float | None:
    return leads[place] if place < len(leads) else None


def _or_nan(lead: float | None) -> float:
    return nan if lead is None else lead
