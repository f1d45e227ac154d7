"""Drawn tokens: batches, caches, chunks and preemptions change nothing, whatever the rule.

float64 and the tiny pair. Under the target-only rule speculation and trees change nothing either: the
oracle draws plainly, the whole prefix computed anew for every token, with the same coins. The other
rules use more coins, so there the tokens differ and the distribution is what has to be right.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from eaglebench.engine.target_choices import make_sampler
from eaglebench.errors import UsageError
from eaglebench.records.generation import GenerationRequest, Sampling, SamplingRule
from eaglebench.records.observation import RequestObservation
from tests.engines import hybrid_models, make_engine, make_knobs, make_request, make_rule, run_all
from tests.engines import tiny_models as tiny
from tests.prompts import shared_prefix_prompts
from tests.slow_oracle import dense_logits, greedy_decode
from tests.tiny_vocabulary import LEAST_P, WRONG_P, p_value

SHAPES = ((2, 1, 3), (3, 1, 4), (3, 4, 13))
DRAWN = Sampling(temperature=1.3, top_p=0.95, rule="draft-distribution", coin_key="7")
LENIENT = Sampling(temperature=1.3, threshold_single=0.3, threshold_acc=0.7, coin_key="7")
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "force-miss": ("force-miss", {}),
    "no-cache": ("no-cache", {}),
    "batch of four": ("radix", {"parallel": 4}),
    "chunks and pages": ("radix", {"parallel": 3, "chunked_prefill_size": 16, "page_size": 4}),
    "preempted": ("radix", {"parallel": 4, "max_total_tokens": 176}),
}


def make_drawn(name: str, ids: Sequence[int], sampling: Sampling) -> GenerationRequest:
    """A request with coins of its own."""
    mine = replace(sampling, coin_key=f"{sampling.coin_key}/{name}")
    return replace(make_request(name, ids, max_new_tokens=12), sampling=mine)


def make_all(sampling: Sampling) -> list[GenerationRequest]:
    """Prompts that share prefixes."""
    prompts = shared_prefix_prompts()[:6]
    return [make_drawn(f"r{index}", ids, sampling) for index, ids in enumerate(prompts)]


def make_requests(temperature: float, top_p: float) -> list[GenerationRequest]:
    """The same under the target-only rule."""
    return make_all(Sampling(temperature=temperature, top_p=top_p, coin_key="7"))


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
    assert sum(o.counters.accepted or 0 for o in arms["radix"].values()) > 0


Told = dict[str, tuple[tuple[int, ...], tuple[int, ...]]]


def tell(observed: dict[str, RequestObservation]) -> Told:
    """Tokens and accepted counts of every request."""
    return {name: (o.output_token_ids, o.accepted_per_step or ()) for name, o in observed.items()}


def run_with(
    requests: Sequence[GenerationRequest], topk: int = 1, arm: str = "radix", **knobs: object
) -> dict[str, RequestObservation]:
    """Requests through an engine that drafts three levels."""
    shape = {"eagle_topk": topk, "num_draft_tokens": 4 if topk == 1 else 12}
    return run_all(make_engine(make_knobs(arm, steps=3, **shape, **knobs)), requests)


RULES = {"drawn chain": (DRAWN, 1), "lenient chain": (LENIENT, 1), "lenient tree": (LENIENT, 4)}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_other_rules_pair(rule: str, variant: str) -> None:
    """Arms, batches, chunks and preemptions give the same tokens in the same steps.

    A preempted request forgets its proposal and draws the same one again. Some drafts are accepted,
    some are not.
    """
    sampling, topk = RULES[rule]
    requests = make_all(sampling)

    alone = run_with(requests, topk)
    arm, knobs = VARIANTS[variant]
    varied = run_with(requests, topk, arm, **knobs)

    assert tell(alone) == tell(varied)
    accepted = [count for o in alone.values() for count in o.accepted_per_step or ()]
    assert 0 < sum(accepted) < 3 * len(accepted)
    if variant == "preempted":
        assert sum(o.counters.preemptions or 0 for o in varied.values()) > 0


@pytest.mark.parametrize("rule", RULES)
def test_order_and_interruption_change_nothing(rule: str) -> None:
    """Reversed, and in two processes as after a resume: coins know the question and nothing else."""
    sampling, topk = RULES[rule]
    requests = make_all(sampling)

    at_once = tell(run_with(requests, topk, parallel=4))
    reversed_ = tell(run_with(requests[::-1], topk, parallel=4))
    resumed = tell(run_with(requests[:2], topk)) | tell(run_with(requests[2:], topk))

    assert at_once == reversed_ == resumed


@pytest.mark.parametrize("sampling", [DRAWN, LENIENT, replace(DRAWN, rule="target-only")])
def test_questions_and_seeds_draw_for_themselves(sampling: Sampling) -> None:
    """One prompt asked as two questions gets two answers, under another seed a third."""
    ids = shared_prefix_prompts()[0]
    other_seed = replace(sampling, coin_key="8")

    observed = run_with([make_drawn(n, ids, sampling) for n in ("a", "b")], parallel=2)
    again = run_with([make_drawn(n, ids, sampling) for n in ("a", "b")], parallel=2)
    third = run_with([make_drawn("a", ids, other_seed)])

    assert tell(observed) == tell(again)
    answers = [observed["a"].output_token_ids, observed["b"].output_token_ids]
    assert len({*answers, third["a"].output_token_ids}) == 3


def test_thresholds_of_one_are_the_target_only_rule() -> None:
    """Spelled out they change no token and no count; below one more drafts are accepted."""
    plain = Sampling(temperature=1.3, coin_key="7")
    ones = replace(plain, threshold_single=1.0, threshold_acc=1.0)

    said = {each: run_with(make_all(each), 4) for each in (plain, ones, LENIENT)}

    assert tell(said[plain]) == tell(said[ones])
    lengths = [
        sum(o.counters.emitted or 0 for o in observed.values())
        / sum(o.counters.verify_steps or 0 for o in observed.values())
        for observed in (said[plain], said[LENIENT])
    ]
    assert lengths[0] < lengths[1]


def test_drawn_drafts_need_a_chain() -> None:
    """A tree is refused when the request comes."""
    engine = make_engine(make_knobs(steps=3, eagle_topk=4, num_draft_tokens=8))

    with pytest.raises(UsageError, match="drafts are drawn in chains; top-k 4 is a tree"):
        engine.add(make_drawn("r", (1, 2, 3), DRAWN))


LENGTH, KEPT, ASKED = 3, 3, 1_500
"""Tokens drawn of each answer, tokens that top-k keeps, and answers."""


@cache
def exact_answers(sampling: Sampling) -> tuple[dict[tuple[int, ...], int], NDArray[np.float64]]:
    """Every answer that can come, by place, and its exact probability, from dense forwards."""
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(LENGTH):
        longer: dict[tuple[int, ...], float] = {}
        for answer, probability in found.items():
            logits = dense_logits(tiny(), [*shared_prefix_prompts()[0], *answer])[-1:]
            odds = make_sampler(sampling).probabilities(logits)[0]
            for token in torch.nonzero(odds).flatten().tolist():
                longer[(*answer, token)] = probability * float(odds[token])
        found = longer
    return {answer: place for place, answer in enumerate(found)}, np.array(list(found.values()))


def answers_p_value(sampling: Sampling) -> float:
    """Chi-square of many drawn answers of the engine against the exact probabilities."""
    places, expected = exact_answers(replace(sampling, coin_key=""))
    ids = shared_prefix_prompts()[0]
    asked = [
        replace(make_drawn(f"r{n}", ids, sampling), max_new_tokens=LENGTH) for n in range(ASKED)
    ]
    engine = make_engine(make_knobs(steps=LENGTH - 1, parallel=50), audit=False)
    observed = run_all(engine, asked)
    drawn = np.array([[places[o.output_token_ids]] for o in observed.values()])
    steps = [step for o in observed.values() for step in o.steps]
    assert 0 < sum(step.accepted for step in steps) < sum(len(s.drafted_ids) for s in steps)
    return p_value(drawn, expected)


@pytest.mark.parametrize("rule", ["target-only", "draft-distribution"])
def test_answers_of_the_engine_follow_the_target(rule: SamplingRule) -> None:
    """Chi-square over whole answers: the head's own q, its reduced logits and both coins at work.

    A right engine fails once in 10 000 keys; the keys are fixed.
    """
    sampling = Sampling(temperature=2.5, top_k=KEPT, rule=rule, coin_key="7")

    assert answers_p_value(sampling) > LEAST_P


def test_answers_under_a_threshold_do_not() -> None:
    """The same test sees that a threshold below 1 is lossy."""
    sampling = Sampling(temperature=2.5, top_k=KEPT, threshold_acc=0.5, coin_key="7")

    assert answers_p_value(sampling) < WRONG_P
