"""What vLLM told of a request, as an observation: rows, seams, preemptions, cuts, and counts alone."""

from typing import Any

import pytest

from eaglebench.backends.vllm_answer import observe
from eaglebench.errors import EngineError
from eaglebench.records.generation import GenerationRequest

PROMPT = (5, 6, 7, 8, 9)


def row(start: int, end: int, known: int, **more: Any) -> dict[str, Any]:
    """A row of a step."""
    plain = {"is_prefill": False, "drafted": [], "sampled": [], "leads": [], "successor": None}
    return {"start": start, "end": end, "known": known, **plain, **more}


def ended(rows: list[dict[str, Any]] | None, output: list[int], **more: Any) -> dict[str, Any]:
    """An answer of the worker."""
    plain = {
        "id": "0",
        "finish": "length",
        "cached": 0,
        "preemptions": 0,
        "accepted": None,
        "drafted": None,
        "leads": [1.0] * len(output),
        "sizes": [],
        "times": [0.0, 1.0, 3.0, 7.0],
    }
    return {"rows": rows, "output": output, **plain, **more}


def observed(answer: dict[str, Any], most: int = 4) -> Any:
    """The observation of a request for so many tokens."""
    request = GenerationRequest(request_id="q/0", prompt_token_ids=PROMPT, max_new_tokens=most)
    return observe(request, answer, 64)


CHUNKS = [
    row(0, 3, 5, is_prefill=True, successor=9),
    row(3, 5, 5, is_prefill=True, sampled=[11], successor=11),
]
VERIFY = row(5, 8, 6, drafted=[12, 13], sampled=[12, 99], leads=[0.5, 0.25])


def test_a_request_is_told_step_by_step() -> None:
    """Chunks with what the drafter was given, the first token, and drafts with their leads."""
    found = observed(ended([*CHUNKS, VERIFY], [11, 12, 99], accepted=[1], drafted=[2]), 3)

    (step,) = found.steps
    assert (step.position, step.drafted_ids, step.target_ids) == (5, (12, 13), (12, 99))
    assert (step.accepted, step.emitted, step.draft_gaps) == (1, 2, (0.5, 0.25))
    assert found.accepted_per_step == (1,)
    assert (found.seam_slots, found.seam_successors) == ((2,), (9,))
    counts = found.counters
    assert (counts.prefill_tokens_computed, counts.prefill_sampled, counts.overrun) == (5, 1, 0)
    assert counts.output_tokens == counts.prefill_sampled + counts.emitted
    assert counts.draft_forwards is counts.pages_allocated is None
    assert found.times.decode_s == 4.0


def test_what_is_cut_is_overrun() -> None:
    """Both accepted, one token delivered: the rest was made in vain, and its leads are not known."""
    full = row(5, 8, 6, drafted=[12, 13], sampled=[12, 13, 99], leads=[0.5, 0.25])
    found = observed(ended([*CHUNKS, full], [11, 12], accepted=[2], drafted=[2]), 2)

    (step,) = found.steps
    assert (step.accepted, step.emitted) == (2, 1)
    assert found.counters.overrun == 2
    assert step.target_gaps[1] != step.target_gaps[1]


def test_a_preempted_request_samples_once_more() -> None:
    """It computes what it knew again; the token it samples there is no verify step's."""
    again = row(0, 8, 8, is_prefill=True, sampled=[14])
    found = observed(
        ended([*CHUNKS, VERIFY, again], [11, 12, 99, 14], accepted=[1], drafted=[2], preemptions=1)
    )

    assert found.counters.prefill_sampled == 2
    assert found.counters.prefill_tokens_computed == 13
    assert found.counters.verify_steps == 1


def test_counts_that_contradict_its_steps_are_an_error() -> None:
    """Neither is taken."""
    with pytest.raises(EngineError, match="other accepted drafts"):
        observed(ended([*CHUNKS, VERIFY], [11, 12, 99], accepted=[2], drafted=[2]))


def test_placeholders_of_drafts_are_refused() -> None:
    """Ids that were not known when the step was planned say nothing."""
    planned = row(5, 8, 6, drafted=[-1, -1], sampled=[12])
    with pytest.raises(EngineError, match="ahead of their ids"):
        observed(ended([*CHUNKS, planned], [11, 12]))


def test_counts_alone_are_in_order_where_every_step_carried_drafts() -> None:
    """Else their order is not known, and nothing is made up."""
    told = observed(ended(None, [11, 12, 99, 14], accepted=[1, 0], drafted=[2, 2], sizes=[1, 2, 1]))
    assert told.accepted_per_step == (1, 0)
    assert (told.counters.verify_steps, told.counters.accepted, told.counters.overrun) == (2, 1, 0)

    mixed = observed(ended(None, [11, 12, 99, 14], accepted=[1], drafted=[2], sizes=[1, 2, 1]))
    assert mixed.accepted_per_step is None
    assert mixed.counters.verify_steps is None
    assert mixed.steps == ()


def test_the_end_of_the_context_is_told_as_such() -> None:
    """VLLM calls it a length."""
    request = GenerationRequest(request_id="q/0", prompt_token_ids=PROMPT, max_new_tokens=9)
    answer = ended([*CHUNKS, VERIFY], [11, 12, 99], accepted=[1], drafted=[2])

    assert observe(request, answer, 8).finish_reason == "context"
    assert observe(request, {**answer, "finish": "error"}, 64).error is not None
