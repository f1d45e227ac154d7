"""Hybrid targets under pressure: scarce pools, many requests."""

import random

import pytest

from eaglebench.records.generation import GenerationRequest
from eaglebench.records.observation import RequestObservation
from tests.engines import hybrid_models, make_engine, make_knobs, make_request, make_rule, run_all
from tests.prompts import question_prompts
from tests.slow_oracle import greedy_decode

WINDOW = 8


def short_requests(count: int) -> list[GenerationRequest]:
    """Beginnings of twelve overlapping prompts, and answers of one to six tokens."""
    rng = random.Random(7)
    prompts = [question_prompts()[rng.randrange(12)] for _ in range(count)]
    return [
        make_request(
            f"r{index}", prompt[: rng.randint(2, len(prompt))], max_new_tokens=rng.randint(1, 6)
        )
        for index, prompt in enumerate(prompts)
    ]


@pytest.mark.parametrize("page_size", [1, 4])
def test_three_hundred_requests_in_a_scarce_pool(page_size: int) -> None:
    """Pools that hold two prompts: both evict, every answer is the oracle's, books are audited."""
    models = hybrid_models(WINDOW)
    requests = short_requests(300)
    knobs = make_knobs(
        "radix",
        steps=2,
        page_size=page_size,
        chunked_prefill_size=32,
        parallel=3,
        max_total_tokens=320,
        swa_full_tokens_ratio=0.5,
    )

    observed = run_all(make_engine(knobs, models=models), requests)

    answers: dict[tuple[int, ...], tuple[int, ...]] = {}
    for request in requests:
        prompt = request.prompt_token_ids
        if prompt not in answers:
            longest = make_request("oracle", prompt, max_new_tokens=6)
            answers[prompt] = tuple(greedy_decode(models, prompt, make_rule(longest))[0])
        expected = answers[prompt][: request.max_new_tokens]
        assert expected == observed[request.request_id].output_token_ids
    assert sum(o.counters.evictions or 0 for o in observed.values()) > 0
    assert sum(o.counters.cached_tokens or 0 for o in observed.values()) > 0


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_hits_are_those_of_a_full_model(page_size: int) -> None:
    """With room for every window, a hybrid target caches what one without windows would."""

    def cached(window: int) -> dict[str, int]:
        knobs = make_knobs("radix", steps=2, page_size=page_size, swa_full_tokens_ratio=1.0)
        prompts = [*question_prompts(), *question_prompts()]
        requests = [make_request(f"r{n}", ids, max_new_tokens=4) for n, ids in enumerate(prompts)]
        observed: dict[str, RequestObservation] = run_all(
            make_engine(knobs, models=hybrid_models(window), audit=False), requests
        )
        return {name: o.counters.cached_tokens or 0 for name, o in observed.items()}

    wide, narrow = cached(400), cached(WINDOW)

    resent = {name for name in wide if int(name[1:]) >= 12}
    assert {n: wide[n] for n in resent} == {n: narrow[n] for n in resent}
    assert sum(narrow.values()) > 0
    assert all(narrow[name] <= wide[name] for name in wide)
