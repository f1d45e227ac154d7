"""Draft trees where room runs out: at the context's end, the head's, the answer's and the pool's.

float64 and the tiny pair, audited, pools full of NaN; what comes out is held against the oracle.
"""

from dataclasses import dataclass
from functools import lru_cache

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, example, given, settings

from eaglebench.engine.engine import Engine
from eaglebench.engine.models import Models
from eaglebench.errors import UsageError
from eaglebench.records.observation import RequestObservation
from eaglebench.spec.shape import DraftShape
from tests.engines import TINY_HEAD, make_engine, make_knobs, make_request, make_rule, tiny_models
from tests.loaded_heads import load_head
from tests.prompts import shared_prefix_prompts
from tests.slow_oracle import greedy_decode

PLENTY = 2048
PROMPT = shared_prefix_prompts()[5]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A draft shape and how much room there is around a prompt.

    `short_by` is the room between the prompt's end and the context's; `head_past` where the head's
    positions end, counted from the prompt's end, None for its own; `pool` slots past the prompt.
    """

    steps: int
    topk: int
    num_draft_tokens: int
    length: int
    page_size: int = 1
    short_by: int = 10
    head_past: int | None = None
    max_new_tokens: int = 24
    pool: int | None = None
    chunk: int | None = None

    @property
    def context_length(self) -> int:
        """Most tokens, prompt and answer together."""
        return self.length + self.short_by


@st.composite
def places(draw: st.DrawFn) -> Place:
    """Any shape that is legal, near any of the limits."""
    steps, topk = draw(st.integers(1, 8)), draw(st.integers(1, 10))
    most = DraftShape(steps, topk, 1).num_candidates
    least = steps if topk == 1 else 1
    nodes = draw(st.integers(least, min(most, 80)))
    return Place(
        steps=steps,
        topk=topk,
        num_draft_tokens=nodes + 1,
        length=draw(st.integers(4, 60)),
        page_size=draw(st.sampled_from([1, 2, 4, 16])),
        short_by=draw(st.integers(1, 24)),
        head_past=draw(st.none() | st.integers(-2, 12)),
        max_new_tokens=draw(st.integers(1, 24)),
        pool=draw(st.none() | st.integers(1, 120)),
        chunk=draw(st.sampled_from([None, 7])),
    )


@lru_cache(maxsize=1024)
def expected_answer(length: int, context_length: int, max_new_tokens: int) -> tuple[int, ...]:
    """What plain greedy decoding says."""
    request = make_request("oracle", PROMPT[:length], max_new_tokens=max_new_tokens)
    rule = make_rule(request, context_length)
    return tuple(greedy_decode(tiny_models(), PROMPT[:length], rule)[0])


def models_at(place: Place) -> Models:
    """The tiny pair, its head made for fewer positions."""
    models = tiny_models()
    if place.head_past is None:
        return models
    head = load_head(TINY_HEAD, models.target)
    head.max_positions = max(1, place.length + place.head_past)  # type: ignore[misc]  # own instance
    return Models(models.target, head)


def make_engine_at(place: Place) -> Engine:
    """A radix engine with just that much room."""
    knobs = make_knobs(
        "radix",
        steps=place.steps,
        eagle_topk=place.topk,
        num_draft_tokens=place.num_draft_tokens,
        page_size=place.page_size,
        chunked_prefill_size=place.chunk,
        max_total_tokens=PLENTY if place.pool is None else place.length + place.pool,
    )
    return make_engine(knobs, models=models_at(place), context_length=place.context_length)


def run_twice(place: Place) -> list[RequestObservation]:
    """The same prompt two times, the second finding the first one's prefix."""
    engine = make_engine_at(place)
    ended: list[RequestObservation] = []
    for name in ("first", "again"):
        request = make_request(name, PROMPT[: place.length], max_new_tokens=place.max_new_tokens)
        engine.add(request)
        while engine.has_work:
            ended += engine.step().ended
    assert_nothing_leaked(engine)
    return ended


def assert_nothing_leaked(engine: Engine) -> None:
    """All pages are free once the tree is flushed."""
    engine.storage.cache.evict(engine.storage.cache.num_evictable_pages)
    assert engine.storage.pages.num_free == engine.storage.pages.num_pages


def check(place: Place) -> None:
    """The oracle's answer; where the pool is the limit, its beginning."""
    expected = expected_answer(place.length, place.context_length, place.max_new_tokens)
    for observed in run_twice(place):
        got = observed.output_token_ids
        if observed.finish_reason == "capacity":
            assert place.pool is not None
            assert expected[: len(got)] == got
        else:
            assert got == expected


def check_unless_refused(place: Place) -> None:
    """`check`, or a word about a pool that can't hold the prompt and its look-ahead."""
    try:
        check(place)
    except UsageError:
        assert place.pool is not None


EAGLE_2 = Place(steps=8, topk=10, num_draft_tokens=60, length=50)


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(places())
@example(Place(steps=5, topk=4, num_draft_tokens=16, length=50, short_by=14))
@example(Place(steps=6, topk=4, num_draft_tokens=16, length=50, short_by=14))
@example(EAGLE_2)
def test_any_tree_near_any_limit_gives_the_oracles_answer(place: Place) -> None:
    """More scratch than nodes near the context's end once ran past the reserved slots."""
    check_unless_refused(place)


@pytest.mark.full
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(places())
def test_any_tree_near_any_limit_many_times(place: Place) -> None:
    """The same, at length."""
    check_unless_refused(place)


@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("shape", [(5, 4, 8), (5, 4, 16), (8, 10, 60), (3, 2, 3), (2, 10, 2)])
def test_every_distance_to_the_context_s_end(shape: tuple[int, int, int], page_size: int) -> None:
    """Every number of tokens that may follow the prompt, until the limit is out of sight."""
    steps, topk, num_draft_tokens = shape
    verified = 0
    for short_by in range(1, steps + 4):
        place = Place(
            steps=steps,
            topk=topk,
            num_draft_tokens=num_draft_tokens,
            length=50,
            page_size=page_size,
            short_by=short_by,
        )
        check(place)
        verified += sum(o.counters.verify_steps or 0 for o in run_twice(place))
    assert verified > 0
