"""Heads other than the tiny pair's own in the engine: EAGLE-1, and heads with few positions."""

import json
import shutil
from functools import cache
from pathlib import Path

import pytest
import torch

from eaglebench.engine.models import Models
from eaglebench.model.heads.format import Algorithm
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.observation import RequestObservation
from tests.engines import (
    TINY_HEAD,
    make_engine,
    make_knobs,
    make_request,
    make_rule,
    run_all,
    tiny_models,
)
from tests.linear_head import linear_models
from tests.loaded_heads import load_head
from tests.prompts import shared_prefix_prompts
from tests.slow_oracle import cold_draft_pool, greedy_decode

ARMS = ("radix", "force-miss", "no-cache")


def make_requests(max_new_tokens: int = 20) -> list[GenerationRequest]:
    """Prompts that share prefixes."""
    return [
        make_request(f"r{index}", ids, max_new_tokens=max_new_tokens)
        for index, ids in enumerate(shared_prefix_prompts())
    ]


@cache
def expected_outputs(max_new_tokens: int = 20) -> dict[str, tuple[int, ...]]:
    """What plain greedy decoding says."""
    return {
        request.request_id: tuple(
            greedy_decode(tiny_models(), request.prompt_token_ids, make_rule(request))[0]
        )
        for request in make_requests(max_new_tokens)
    }


def outputs_of(observed: dict[str, RequestObservation]) -> dict[str, tuple[int, ...]]:
    """Tokens of every request."""
    return {name: o.output_token_ids for name, o in observed.items()}


@pytest.mark.parametrize(
    ("page_size", "chunk", "parallel"), [(1, None, 1), (1, 16, 3), (4, 5, 4), (16, 16, 2)]
)
def test_eagle1_is_lossless_and_cache_neutral(
    page_size: int, chunk: int | None, parallel: int
) -> None:
    """Every arm gives the oracle's tokens with the same accepted counts, and drafts do arrive."""
    arms = {}
    for arm in ARMS:
        knobs = make_knobs(arm, page_size=page_size, chunked_prefill_size=chunk, parallel=parallel)
        arms[arm] = run_all(make_engine(knobs, models=linear_models()), make_requests())
    accepted = {arm: {n: o.accepted_per_step for n, o in arms[arm].items()} for arm in ARMS}
    steps = sum(o.counters.verify_steps or 0 for o in arms["radix"].values())

    assert [outputs_of(arms[arm]) for arm in ARMS] == [expected_outputs()] * 3
    assert accepted["radix"] == accepted["force-miss"] == accepted["no-cache"]
    assert 0.3 * steps < sum(o.counters.accepted or 0 for o in arms["radix"].values())
    assert sum(o.counters.cached_tokens or 0 for o in arms["radix"].values()) > 0


def test_eagle1_draft_kv_is_that_of_a_cold_pass() -> None:
    """After every step, for every running request, within 1e-10."""
    models = linear_models()
    knobs = make_knobs(page_size=4, chunked_prefill_size=16, parallel=3)
    engine = make_engine(knobs, models=models)
    queue = make_requests(8)
    num_compared = 0
    while queue or engine.scheduler.running:
        while queue and engine.scheduler.has_room:
            engine.add(queue.pop(0))
        engine.step()
        for running in engine.scheduler.running:
            settled = running.num_written
            if not settled or engine.draft_pool is None:
                continue
            cold = cold_draft_pool(models, running.known_tokens.tolist()[: settled + 1])
            slots = torch.from_numpy(running.held.slots(0, settled))
            got, expected = (
                engine.draft_pool.gather(0, slots),
                cold.gather(0, torch.arange(settled)),
            )
            torch.testing.assert_close(got, expected, atol=1e-10, rtol=0)
            num_compared += settled

    assert num_compared > 1000


def short_sighted_models(folder: Path, max_positions: int) -> Models:
    """The tiny pair, its head made for so many positions."""
    shutil.copytree(TINY_HEAD, folder)
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] = max_positions
    (folder / "config.json").write_text(json.dumps(config))
    target = tiny_models().target
    return Models(target, load_head(folder, target))


@pytest.mark.parametrize("max_positions", [1, 72, 90, 4096])
@pytest.mark.parametrize(("topk", "num_draft_tokens"), [(1, 4), (3, 9)])
def test_a_head_runs_past_its_positions(
    tmp_path: Path, max_positions: int, topk: int, num_draft_tokens: int
) -> None:
    """No chain or tree reaches past the limit, nothing crashes, the tokens are the same."""
    models = short_sighted_models(tmp_path / "head", max_positions)
    knobs = make_knobs(parallel=3, eagle_topk=topk, num_draft_tokens=num_draft_tokens)

    observed = run_all(make_engine(knobs, models=models), make_requests(40))

    steps = [step for o in observed.values() for step in o.steps]
    ends = [step.position + step.num_levels for step in steps if step.drafted_ids]
    drafted = sum(len(step.drafted_ids) for step in steps)
    assert outputs_of(observed) == expected_outputs(40)
    assert max(ends, default=0) < max_positions
    assert (drafted == 0) == (max_positions == 1)
    assert any(step.position >= max_positions for step in steps) == (max_positions < 4096)


def test_target_and_draft_have_one_capacity(tmp_path: Path) -> None:
    """Past every built-in default of a context length drafts go on, and the tokens are the same."""
    models = short_sighted_models(tmp_path / "head", 8192)
    prompt = [token for ids in shared_prefix_prompts() for token in ids]
    request = make_request("long", (prompt * 50)[:5000], max_new_tokens=12)
    outputs = []
    for steps in (0, 3):
        knobs = make_knobs(
            steps=steps, page_size=16, chunked_prefill_size=512, max_total_tokens=6144
        )
        engine = make_engine(knobs, models=models, context_length=6000)
        outputs.append(run_all(engine, [request])["long"])
    plain, drafted = outputs

    assert plain.output_token_ids == drafted.output_token_ids
    assert plain.counters.drafted == 0
    assert (drafted.counters.num_drafts or 0) == (drafted.counters.verify_steps or 0) > 0
    assert min(step.position for step in drafted.steps) >= 5000


def test_the_algorithms_are_what_they_are_called() -> None:
    """The pair that ships is EAGLE-3, the fitted one EAGLE-1."""
    heads = [models.head for models in (tiny_models(), linear_models())]

    assert [head.algorithm for head in heads if head] == [Algorithm.EAGLE3, Algorithm.EAGLE]
