"""The engine against the loop of `tools/reference`, which shares nothing with it."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import torch

from eaglebench.records.observation import RequestObservation
from tests.engines import (
    TINY,
    TINY_HEAD,
    make_engine,
    make_knobs,
    make_request,
    run_all,
)
from tools.reference.head import ReferenceHead
from tools.reference.make import MOST_PROPOSED, ReferenceTarget, reference_lines

NUM_QUESTIONS, MAX_NEW_TOKENS = 3, 32


@cache
def reference_turns() -> tuple[dict[str, Any], ...]:
    """Both turns of a few of the tiny pair's questions, in float64."""
    torch.set_num_threads(1)
    target = ReferenceTarget(TINY, torch.float64)
    head = ReferenceHead(TINY_HEAD, target.embedding)
    lines = (TINY / "prompts.jsonl").read_text().splitlines()[:NUM_QUESTIONS]
    questions = [json.loads(line) for line in lines]
    return tuple(reference_lines(target, head, questions, MAX_NEW_TOKENS))


def observed_turns(
    arm: str, num_proposed: int
) -> Iterator[tuple[dict[str, Any], RequestObservation]]:
    """Each turn of the reference, and what the engine makes of its prompt."""
    engine = make_engine(make_knobs(arm, steps=num_proposed, page_size=4, chunked_prefill_size=16))
    for turn in reference_turns():
        name = f"{turn['question_id']}/{turn['turn']}"
        request = make_request(
            name,
            turn["prompt_token_ids"],
            max_new_tokens=MAX_NEW_TOKENS,
            stop_token_ids=tiny_stop_ids(),
        )
        yield turn, run_all(engine, [request])[name]


def within_answer(observed: RequestObservation) -> list[int]:
    """Accepted counts; of the last step only what the answer still had room for."""
    return [min(step.accepted, step.emitted) for step in observed.steps]


def tiny_stop_ids() -> tuple[int, ...]:
    """The end token that plain generation stops at."""
    found = json.loads((TINY / "generation_config.json").read_text())["eos_token_id"]
    return (found,) if isinstance(found, int) else tuple(found)


@pytest.mark.parametrize("num_proposed", range(1, MOST_PROPOSED + 1))
@pytest.mark.parametrize("arm", ["radix", "no-cache"])
def test_answers_and_accepted_counts_are_those_of_the_loop(arm: str, num_proposed: int) -> None:
    """Turn by turn and step by step, at every draft length, the step that the end cuts included."""
    num_accepted = num_cached = 0
    for turn, observed in observed_turns(arm, num_proposed):
        assert list(observed.output_token_ids) == turn["output_token_ids"]
        expected = turn["accepted_per_step"][str(num_proposed)]
        assert within_answer(observed) == expected
        num_accepted += sum(expected)
        num_cached += observed.counters.cached_tokens or 0

    assert num_accepted > 20
    assert (num_cached > 0) == (arm == "radix")


def test_a_reference_line_says_how_close_the_calls_were() -> None:
    """Leads of draft and target are positive, and nothing but the turn's own counts is in it."""
    for turn in reference_turns():
        assert set(turn["accepted_per_step"]) == {"1", "2", "3", "4", "5"}
        assert turn["min_draft_top2_gap"] > 0
        assert turn["min_target_top2_gap"] > 0
