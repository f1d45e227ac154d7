"""Every planted fault of a public engine is seen by at least one oracle."""

import numpy as np
import pytest
import torch

from eaglebench.errors import InvariantError
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.observation import RequestObservation
from tests.engines import make_engine, make_knobs, make_request, run_all, tiny_models
from tests.prompts import question_prompts, shared_prefix_prompts
from tests.slow_oracle import cold_draft_pool

TOLERANCE = 1e-10


def make_requests(max_new_tokens: int = 48) -> list[GenerationRequest]:
    """Prompts with shared prefixes and branches, long enough for chunks."""
    prompts = [*shared_prefix_prompts(), *question_prompts()]
    return [
        make_request(f"r{index}", ids, max_new_tokens=max_new_tokens)
        for index, ids in enumerate(prompts)
    ]


def run_arm(arm: str, **knobs: object) -> dict[str, RequestObservation]:
    """All requests through an arm."""
    return run_all(make_engine(make_knobs(arm, **knobs), audit=False), make_requests())  # type: ignore[arg-type]


def accepted(observed: dict[str, RequestObservation]) -> dict[str, tuple[int, ...]]:
    """Accepted counts a step, by request."""
    return {name: o.accepted_per_step or () for name, o in observed.items()}


def drafted(observed: dict[str, RequestObservation]) -> dict[str, list[tuple[int, ...]]]:
    """Proposed tokens a step, by request."""
    return {name: [step.drafted_ids for step in o.steps] for name, o in observed.items()}


def outputs(observed: dict[str, RequestObservation]) -> dict[str, tuple[int, ...]]:
    """Delivered tokens by request."""
    return {name: o.output_token_ids for name, o in observed.items()}


@pytest.mark.parametrize(
    ("arm", "knobs"),
    [
        ("unigram", {}),
        ("kv-reuse", {}),
        ("seam-guess", {"chunked_prefill_size": 4}),
        ("seam-last", {"chunked_prefill_size": 4}),
    ],
)
def test_fault_changes_acceptance_and_not_the_text(arm: str, knobs: dict[str, object]) -> None:
    """Wrong draft KV moves accepted counts while every output stays the same."""
    right = run_arm("radix", **knobs)
    faulty = run_arm(arm, **knobs)

    assert outputs(right) == outputs(faulty)
    assert accepted(right) != accepted(faulty)


@pytest.mark.parametrize(
    ("arm", "knobs"),
    [
        ("unigram", {}),
        ("kv-reuse", {}),
        ("seam-guess", {"chunked_prefill_size": 4}),
        ("seam-last", {"chunked_prefill_size": 4}),
    ],
)
def test_fault_is_seen_by_the_content_oracle(arm: str, knobs: dict[str, object]) -> None:
    """Draft KV of some committed slot differs from a cold pass."""
    assert worst_draft_difference("radix", **knobs) < TOLERANCE
    assert worst_draft_difference(arm, **knobs) > TOLERANCE


def worst_draft_difference(arm: str, **knobs: object) -> float:
    """Largest difference between running requests' draft KV and a cold pass."""
    engine = make_engine(make_knobs(arm, **knobs), audit=False)  # type: ignore[arg-type]
    assert engine.draft_pool is not None
    worst = 0.0
    for request in make_requests(max_new_tokens=10):
        engine.add(request)
        while engine.has_work:
            engine.step()
            for running in engine.scheduler.running:
                known = running.known_tokens.tolist()
                settled = min(running.draft_valid_len, len(known) - 1)
                cold = cold_draft_pool(tiny_models(), known)
                slots = running.held.slots(0, settled)
                for got, expected in zip(
                    engine.draft_pool.gather(0, torch.from_numpy(slots)),
                    cold.gather(0, torch.from_numpy(np.arange(settled))),
                    strict=True,
                ):
                    worst = max(worst, float((got - expected).abs().max()))
    return worst


def test_no_lookahead_is_seen_by_the_ownership_audit() -> None:
    """A proposal that writes past the allocation writes into a page nobody gave it."""
    knobs = make_knobs("no-lookahead", steps=5, page_size=4, parallel=4)

    with pytest.raises(InvariantError, match=r"page 0|not own"):
        run_all(make_engine(knobs, audit=True), make_requests())


def test_no_lookahead_changes_drafts_in_a_batch() -> None:
    """At parallel 4 and 5 steps neighbours overwrite the shared page: other tokens are proposed."""
    knobs = {"steps": 5, "page_size": 1, "parallel": 4}
    right = run_arm("radix", **knobs)
    faulty = run_arm("no-lookahead", **knobs)

    assert outputs(right) == outputs(faulty)
    assert drafted(right) != drafted(faulty)
