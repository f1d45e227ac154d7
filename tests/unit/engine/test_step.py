"""What a step writes down about itself, held against dense forwards and hand-made runs."""

from functools import cache
from itertools import accumulate

import pytest
import torch

from eaglebench.records.observation import RequestObservation
from tests.engines import make_engine, make_knobs, make_request, run_all, tiny_models
from tests.prompts import question_prompts
from tests.slow_oracle import dense_logits

STEPS = 4


@cache
def plain_run() -> RequestObservation:
    """Forty tokens of the tiny pair, chains of four."""
    request = make_request("r", question_prompts()[0], max_new_tokens=40)
    return run_all(make_engine(make_knobs(steps=STEPS)), [request])["r"]


def lead(logits: torch.Tensor) -> float:
    """Largest minus second largest."""
    best = torch.sort(logits, descending=True).values
    return float(best[0] - best[1])


def test_stored_target_gaps_are_leads_of_the_dense_forward() -> None:
    """Of the prompt's last token, and of every token that a verify step delivered."""
    run = plain_run()
    prompt = question_prompts()[0]
    known = [*prompt, *run.output_token_ids]
    dense = dense_logits(tiny_models(), known)

    assert run.prefill_gap == pytest.approx(lead(dense[len(prompt) - 1]), abs=1e-9)
    compared = 0
    for step in run.steps:
        for depth in range(step.emitted):
            expected = lead(dense[step.position + depth])
            assert step.target_gaps[depth] == pytest.approx(expected, abs=1e-9)
            compared += 1
    assert compared > 30


def test_stored_gaps_are_differences_and_not_logits() -> None:
    """Adding a number to all logits of target and head changes no gap."""
    models = tiny_models()
    real_target, real_head = models.target.lm_head_logits, models.head.logits  # type: ignore[union-attr]
    try:
        models.target.lm_head_logits = lambda *args: real_target(*args) + 50.0  # type: ignore[method-assign]
        models.head.logits = lambda hidden: real_head(hidden) + 50.0  # type: ignore[union-attr,method-assign]
        request = make_request("r", question_prompts()[0], max_new_tokens=40)
        shifted = run_all(make_engine(make_knobs(steps=STEPS)), [request])["r"]
    finally:
        del models.target.lm_head_logits, models.head.logits  # type: ignore[union-attr]

    gaps = [g for step in plain_run().steps for g in (*step.target_gaps, *step.draft_gaps)]
    again = [g for step in shifted.steps for g in (*step.target_gaps, *step.draft_gaps)]
    assert len(gaps) > 60
    assert again == pytest.approx(gaps, abs=1e-9)


def test_drafts_that_the_target_confirmed_count_although_they_were_cut() -> None:
    """An end token as the first of an accepted run: all of the run is accepted, one is delivered."""
    run = plain_run()
    said = run.output_token_ids
    starts = list(accumulate((step.emitted for step in run.steps), initial=1))  # 1 is the prefill's
    number, step, start = next(
        (number, step, start)
        for number, (step, start) in enumerate(zip(run.steps, starts, strict=False))
        if step.accepted >= 2 and said[start] not in said[:start]
    )
    token_id = said[start]
    request = make_request(
        "r", question_prompts()[0], max_new_tokens=40, stop_token_ids=(token_id,)
    )

    got = run_all(make_engine(make_knobs(steps=STEPS)), [request])["r"]

    assert got.finish_reason == "stop"
    assert got.output_token_ids == said[: start + 1]
    last = got.steps[number]
    assert (last.accepted, last.emitted) == (step.accepted, 1)
    before = sum(each.accepted for each in run.steps[:number])
    assert got.counters.accepted == before + step.accepted
    assert got.counters.overrun == step.accepted


def test_steps_without_a_draft_are_no_drafts() -> None:
    """A head made for 60 positions drafts behind roots 0 to 58 and is silent from 59 on."""
    head = tiny_models().head
    assert head is not None
    before = head.max_positions
    request = make_request("r", question_prompts()[0][:50], max_new_tokens=40)
    try:
        head.max_positions = 60  # type: ignore[misc]  # a plain attribute of the loaded head
        got = run_all(make_engine(make_knobs(steps=STEPS)), [request])["r"]
    finally:
        head.max_positions = before  # type: ignore[misc]  # as above

    drafting = [step for step in got.steps if step.position < 59]
    assert 0 < len(drafting) < len(got.steps)
    assert all(step.drafted_ids for step in drafting)
    assert not any(step.drafted_ids for step in got.steps if step.position >= 59)
    assert got.counters.num_drafts == len(drafting)
