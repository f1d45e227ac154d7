"""A target whose rotary table depends on the length: every arm and batch gives the oracle's tokens.

`transformers` takes one table for a whole forward, that of its longest row. Up to where it changes
there is one table, and no further does such a target go.
"""

from typing import Any

import pytest

from eaglebench.engine.models import Models
from eaglebench.model.target import Target
from tests.engines import make_engine, make_knobs, make_request, make_rule, run_all
from tests.families import make_family
from tests.slow_oracle import greedy_decode

KINDS: dict[str, tuple[dict[str, Any], int]] = {
    "longrope": (
        {
            "rope_type": "longrope",
            "short_factor": [1.0, 1.5, 2.0, 2.5],
            "long_factor": [2.0, 4.0, 6.0, 8.0],
            "original_max_position_embeddings": 48,
        },
        48,
    ),
    "dynamic": ({"rope_type": "dynamic", "factor": 4.0}, 128),
}


@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize("arm", ["radix", "no-cache"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_arm_gives_the_oracles_tokens(kind: str, arm: str, parallel: int) -> None:
    """Short rows beside one that runs to the end of the context, cached and chunked, in float64."""
    rope, limit = KINDS[kind]
    target = Target.proved(
        make_family("llama", rope_parameters={"rope_theta": 10000.0, **rope}).double()
    )
    assert target.context_length == limit
    models = Models(target, None)
    shared = list(range(3, 15))
    long = [50 + 7 * number % 60 for number in range(limit - 20)]
    prompts = [[*shared, 40, 41], [*shared, *long], [*shared, 40, 42, 43]]
    requests = [make_request(f"r{n}", ids, max_new_tokens=12) for n, ids in enumerate(prompts)]
    knobs = make_knobs(
        arm, steps=0, page_size=4, chunked_prefill_size=9, parallel=parallel, max_total_tokens=1024
    )

    found = run_all(make_engine(knobs, models=models, context_length=limit), requests)

    for request in requests:
        rule = make_rule(request, limit)
        expected, reason = greedy_decode(models, list(request.prompt_token_ids), rule)
        got = found[request.request_id]
        assert list(got.output_token_ids) == expected
        assert got.finish_reason == reason
        assert len(expected) >= 8
    if arm == "radix" and parallel == 1:
        assert sum(each.counters.cached_tokens or 0 for each in found.values()) > 0
