"""From an observation to stored lines."""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from math import isfinite

from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.observation import RequestObservation
from eaglebench.store.records import StepRecord, TurnRecord


def histogram(accepted_per_step: Sequence[int], num_draft_nodes: int) -> list[int]:
    """How many verify steps accepted 0, 1, .. num_draft_nodes proposed tokens."""
    counts = Counter(accepted_per_step)
    return [counts[accepted] for accepted in range(num_draft_nodes + 1)]


def ids_digest(token_ids: Sequence[int]) -> str:
    """SHA-256 over token ids."""
    return sha256(",".join(map(str, token_ids)).encode()).hexdigest()


def turn_record(
    observation: RequestObservation,
    *,
    knobs: EngineKnobs,
    prompt_token_ids: Sequence[int],
    **where: object,
) -> TurnRecord:
    """The line of one turn; `where` holds the fields that place it in the run."""
    times = observation.times
    return TurnRecord.model_validate(
        {
            **where,
            "counters": observation.counters,
            "page_size": knobs.page_size,
            "chunked_prefill_size": knobs.chunked_prefill_size,
            "eagle_topk": knobs.eagle_topk,
            "num_steps": knobs.num_steps,
            "num_draft_tokens": knobs.num_draft_tokens,
            "parallel": knobs.parallel,
            "preallocation": knobs.preallocation,
            "accept_hist": histogram(observation.accepted_per_step, knobs.num_draft_nodes),
            "accepted_per_step": list(observation.accepted_per_step),
            "prompt_token_ids": list(prompt_token_ids),
            "output_token_ids": list(observation.output_token_ids),
            "prompt_sha256": ids_digest(prompt_token_ids),
            "output_sha256": ids_digest(observation.output_token_ids),
            "prefill_gap": _finite(observation.prefill_gap),
            "t_queue_s": times.queue_s,
            "t_prefill_s": times.prefill_s,
            "t_decode_s": times.decode_s,
            "t_total_s": times.total_s,
            "finish_reason": observation.finish_reason,
            "error": observation.error,
        }
    )


def step_records(observation: RequestObservation, **where: object) -> list[StepRecord]:
    """The lines of a turn's verify steps; `where` holds the fields that place the turn."""
    return [
        StepRecord.model_validate(
            {
                **where,
                "step": index,
                "position": step.position,
                "drafted_ids": list(step.drafted_ids),
                "target_ids": list(step.target_ids),
                "accepted": step.accepted,
                "emitted": step.emitted,
                "target_gaps": [_finite(gap) for gap in step.target_gaps],
                "draft_gaps": [_finite(gap) for gap in step.draft_gaps],
                "parents": list(step.parents),
            }
        )
        for index, step in enumerate(observation.steps)
    ]


def _finite(gap: float | None) -> float | None:
    """A gap as it can be read back; None where it is NaN or infinite."""
    return gap if gap is not None and isfinite(gap) else None
