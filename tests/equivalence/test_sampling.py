"""Drawn tokens: speculation, trees, batches and caches change nothing.

float64 and the tiny pair. The oracle draws plainly, the whole prefix computed anew for every token,
with the same coins; equality is exact.
"""

import pytest

from eaglebench.contracts.generation import GenerationRequest, Sampling
from eaglebench.contracts.observation import RequestObservation
from eaglebench.engine.oracle import greedy_decode
from tests.engines import hybrid_models, make_engine, make_knobs, make_request, make_rule, run_all
from tests.engines import tiny_models as tiny
from tests.prompts import shared_prefix_prompts

SHAPES = ((2, 1, 3), (3, 1, 4), (3, 4, 13))


def make_requests(temperature: float, top_p: float) -> list[GenerationRequest]:
    """Prompts that share prefixes, each with coins of its own."""
    made = []
    for index, ids in enumerate(shared_prefix_prompts()[:6]):
        plain = make_request(f"r{index}", ids, max_new_tokens=12)
        made.append(
            GenerationRequest(
                request_id=plain.request_id,
                prompt_token_ids=plain.prompt_token_ids,
                max_new_tokens=plain.max_new_tokens,
                sampling=Sampling(temperature=temperature, top_p=top_p, coin_key=f"7/r{index}"),
            )
        )
    return made


@pytest.mark.parametrize(("temperature", "top_p"), [(0.7, 1.0), (1.3, 0.9)])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("window", [None, 8])
def test_drawn_tokens_are_those_of_plain_sampling(
    temperature: float, top_p: float, shape: tuple[int, int, int], window: int | None
) -> None:
    """Chains and trees, in a batch, with and without a cache; some drafts are accepted."""
    models = tiny() if window is None else hybrid_models(window)
    requests = make_requests(temperature, top_p)
    expected = {
        r.request_id: tuple(greedy_decode(models, r.prompt_token_ids, make_rule(r), r.sampling)[0])
        for r in requests
    }
    steps, topk, draft_tokens = shape
    arms: dict[str, dict[str, RequestObservation]] = {}
    for arm in ("radix", "no-cache"):
        knobs = make_knobs(
            arm,
            steps=steps,
            eagle_topk=topk,
            num_draft_tokens=draft_tokens,
            page_size=4,
            chunked_prefill_size=16,
            parallel=3,
        )
        arms[arm] = run_all(make_engine(knobs, models=models), requests)

    for observed in arms.values():
        assert expected == {name: o.output_token_ids for name, o in observed.items()}
    accepted = [{n: o.accepted_per_step for n, o in observed.items()} for observed in arms.values()]
    assert accepted[0] == accepted[1]
    assert sum(o.counters.accepted for o in arms["radix"].values()) > 0
