"""NaN and infinite numbers of target or head: the turn fails by name, the others don't notice."""

import re
from dataclasses import replace
from functools import cache
from math import isfinite
from typing import Any

import numpy as np
import pytest
import torch

from eaglebench.engine.engine import Engine
from eaglebench.records.generation import GenerationRequest, Sampling
from eaglebench.records.observation import RequestObservation
from tests.engines import make_engine, make_knobs, make_request, run_all
from tests.poison import poisoned_models
from tests.prompts import question_prompts

NAN, INF = float("nan"), float("inf")
Knobs = dict[str, Any]
SHAPES: dict[str, Knobs] = {"chain": {}, "tree": {"eagle_topk": 3, "num_draft_tokens": 7}}
CHUNKS: dict[str, Knobs] = {"whole": {}, "chunks": {"chunked_prefill_size": 16}}
NUM_NEW = 24


def shared_prompts() -> tuple[tuple[int, ...], ...]:
    """Two questions, and one that follows the first for 40 tokens."""
    first, second = question_prompts()[0][:64], question_prompts()[3][:70]
    return first, second, (*first[:40], *second[40:])


def make_requests(sampling: Sampling | None = None) -> list[GenerationRequest]:
    """All at once; r0 is the one that will fail."""
    return [
        replace(
            make_request(f"r{index}", prompt, max_new_tokens=NUM_NEW),
            sampling=sampling and replace(sampling, coin_key=f"{index}"),
        )
        for index, prompt in enumerate(shared_prompts())
    ]


@cache
def healthy(is_drawn: bool) -> dict[str, RequestObservation]:
    """What the whole pair says, without a cache."""
    knobs = make_knobs("no-cache", parallel=3)
    return run_all(make_engine(knobs), make_requests(drawn() if is_drawn else None))


def drawn() -> Sampling:
    """A draw that is neither greedy nor flat."""
    return Sampling(temperature=0.8, coin_key="")


BAD_TOKEN = 0x7F
BAD_OUTPUT = 9
"""r0 is made to deliver the bad token as its output of this index."""
REPLAY = {"r0": (*b"the plums", BAD_TOKEN, *b" and the pears")}


def make(
    whose: str, token_id: int, value: float, knobs: Knobs | None = None, backend: str = "loop"
) -> Engine:
    """An engine over the poisoned pair; its books are audited after every step."""
    models = poisoned_models(whose, token_id, value, attention_backend=backend)
    settled = replace(make_knobs(parallel=3), **(knobs or {}))
    return make_engine(settled, models=models)


def named_positions(observation: RequestObservation, whose: str) -> tuple[int, int]:
    """First and last position that an error names, of target or head."""
    pattern = rf"the {whose}'s numbers at positions? (\d+)(?: to (\d+))? are NaN or infinite"
    found = re.fullmatch(pattern, observation.error or "")
    assert found, observation.error
    return int(found[1]), int(found[2] or found[1])


def assert_others_unharmed(
    got: dict[str, RequestObservation], said: dict[str, RequestObservation]
) -> None:
    """The requests beside the failed one say what they say alone."""
    for name in ("r1", "r2"):
        assert got[name].finish_reason == "length"
        assert said[name].output_token_ids == got[name].output_token_ids


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_drawn", [False, True])
@pytest.mark.parametrize("backend", ["loop", "padded"])
@pytest.mark.parametrize("whose", ["target", "head"])
def test_a_turn_that_meets_one_while_decoding_fails_alone(
    shape: str, is_drawn: bool, backend: str, whose: str
) -> None:
    """It ends behind the bad token; the head's slot before that token is paired with it."""
    prompt = shared_prompts()[0]
    engine = make(whose, BAD_TOKEN, NAN, SHAPES[shape], backend)

    got = run_all(engine, make_requests(drawn() if is_drawn else None), REPLAY)

    failed = got["r0"]
    first, last = named_positions(failed, whose)
    assert failed.finish_reason == "failed"
    assert first <= len(prompt) + BAD_OUTPUT - (1 if whose == "head" else 0) <= last
    assert failed.output_token_ids == REPLAY["r0"][: BAD_OUTPUT + 1]
    assert_others_unharmed(got, healthy(is_drawn))
    gaps = [g for o in got.values() for s in o.steps for g in (*s.target_gaps, *s.draft_gaps)]
    assert gaps
    assert all(map(isfinite, gaps))
    assert (
        len(prompt) + BAD_OUTPUT
        >= engine.storage.cache.lookup(
            engine.config.policy.make_key(np.array([*prompt, *REPLAY["r0"]], dtype=np.int32), None),
            1000,
        ).num_slots
        >= len(prompt)
    )


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("whose", ["target", "head"])
def test_nothing_of_a_bad_prompt_is_ever_hit(whose: str, value: float, chunks: str) -> None:
    """The token at position 50 of r0 is bad: 50 slots at most get into the tree, 40 of them r2's.

    The head's slot 49 is paired with the token after it, so it is the first bad one there.
    """
    first, _, third = shared_prompts()
    bad = (*first[:50], BAD_TOKEN, *first[51:])
    engine = make(whose, BAD_TOKEN, value, CHUNKS[chunks])
    good = make_requests()[1:]

    got = run_all(engine, [make_request("r0", bad, max_new_tokens=NUM_NEW), *good])

    position = 50 if whose == "target" else 49
    first_named, last_named = named_positions(got["r0"], whose)
    assert first_named <= position <= last_named
    assert_others_unharmed(got, healthy(is_drawn=False))
    again = run_all(engine, [make_request("r0", bad), make_request("r3", (*bad[:50], *third))])
    assert again["r0"].finish_reason == "failed"
    assert named_positions(again["r0"], whose)[0] >= (again["r0"].counters.cached_tokens or 0)
    assert (again["r0"].counters.cached_tokens or 0) <= position
    assert again["r3"].finish_reason == "length"
    whole = run_all(make_engine(), [make_request("r3", (*bad[:50], *third))])["r3"]
    assert whole.output_token_ids == again["r3"].output_token_ids


def test_infinite_logits_are_no_answer() -> None:
    """One infinite weight in the language-model head: states are finite, the logits are not."""
    models = poisoned_models("target", -1, 0.0)
    weight = models.target.model.get_output_embeddings().weight
    with torch.no_grad():
        weight[7, 3] = INF
    prompt = shared_prompts()[0]

    got = run_all(make_engine(models=models), [make_request("r", prompt)])["r"]

    last = len(prompt) - 1
    assert (got.finish_reason, got.output_token_ids) == ("failed", ())
    assert got.error == f"the target's numbers at position {last} are NaN or infinite"


def test_a_failed_turn_frees_all_it_owned() -> None:
    """Pages are conserved: afterwards every page is free or the tree's."""
    engine = make("target", BAD_TOKEN, NAN)
    free = engine.storage.pages.num_free

    run_all(engine, [make_request("r0", (*shared_prompts()[0][:50], BAD_TOKEN, 5, 6))])

    assert free == engine.storage.pages.num_free + engine.storage.cache.num_evictable_pages
