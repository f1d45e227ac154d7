"""Random histories of the whole engine against the oracles.

After every action the books are audited, and the K and V of every committed position of every
running request, target and draft, are compared with one cold, unchunked, uncached pass. Pools
start as NaN, so a slot that was never written can't pass for right.
"""

from contextlib import suppress
from functools import lru_cache
from typing import ClassVar

import hypothesis.strategies as st
import numpy as np
import torch
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from eaglebench.engine.engine import Engine
from eaglebench.engine.models import Models
from eaglebench.engine.request import EngineRequest
from eaglebench.errors import UsageError
from eaglebench.kv.pool import KVPool, LayerPools
from eaglebench.kv.window import PagePairAllocator
from eaglebench.records.knobs import EVICTION_POLICIES, PREALLOCATIONS
from eaglebench.records.observation import RequestObservation
from eaglebench.spec.shape import DraftShape
from tests.engines import (
    hybrid_models,
    make_engine,
    make_knobs,
    make_request,
    make_rule,
    tiny_models,
)
from tests.prompts import shared_prefix_prompts
from tests.slow_oracle import cold_draft_pool, cold_target_pool, greedy_decode

TOLERANCE = 1e-10


@lru_cache(maxsize=4096)
def cold_pools(tokens: tuple[int, ...], window: int | None = None) -> tuple[KVPool, KVPool | None]:
    """Target KV of all tokens and draft KV of all but the last, computed cold."""
    models = tiny_models() if window is None else hybrid_models(window)
    draft = cold_draft_pool(models, tokens) if len(tokens) > 1 else None
    return cold_target_pool(models, tokens), draft


@lru_cache(maxsize=256)
def expected_output(
    prompt: tuple[int, ...], max_new_tokens: int, window: int | None
) -> tuple[int, ...]:
    """What plain greedy decoding says."""
    request = make_request("oracle", prompt, max_new_tokens=max_new_tokens)
    models = tiny_models() if window is None else hybrid_models(window)
    return tuple(greedy_decode(models, prompt, make_rule(request))[0])


def assert_same_kv(
    pools: LayerPools,
    slots: np.ndarray,
    cold: KVPool,
    num_layers: int,
    window_slots: np.ndarray | None = None,
) -> None:
    """K and V at `slots` equal positions 0 .. of a cold pool, in every layer.

    Window layers are looked at where they still have a slot.
    """
    for layer in range(num_layers):
        place = pools.of_layer(layer)
        mine = window_slots if place.is_window and window_slots is not None else slots
        positions = np.flatnonzero(mine >= 0)
        for got, expected in zip(
            place.pool.gather(place.layer, torch.from_numpy(mine[positions])),
            cold.gather(layer, torch.from_numpy(positions)),
            strict=True,
        ):
            torch.testing.assert_close(got, expected, atol=TOLERANCE, rtol=0)


class EngineHistory(RuleBasedStateMachine):
    """Add, step, abort, with a pool small enough to evict and to preempt."""

    engine: Engine
    window: ClassVar[int | None] = None
    ratio: ClassVar[float] = 0.8
    topks: ClassVar[tuple[int, ...]] = (1,)

    @property
    def models(self) -> Models:
        """The pair under test."""
        return tiny_models() if self.window is None else hybrid_models(self.window)

    @initialize(
        page_size=st.sampled_from([1, 2, 4, 16]),
        chunk=st.sampled_from([None, 3, 16, 40]),
        parallel=st.integers(1, 4),
        steps=st.integers(1, 4),
        branches=st.integers(0, 5),
        nodes=st.integers(1, 24),
        pool=st.sampled_from([192, 256, 512]),
        preallocation=st.sampled_from(PREALLOCATIONS),
        eviction=st.sampled_from(EVICTION_POLICIES),
    )
    def start(
        self,
        page_size: int,
        chunk: int | None,
        parallel: int,
        steps: int,
        branches: int,
        nodes: int,
        pool: int,
        preallocation: str,
        eviction: str,
    ) -> None:
        """An engine with these knobs."""
        topk = self.topks[branches % len(self.topks)]
        most = DraftShape(steps, topk, nodes).num_candidates
        num_nodes = steps if topk == 1 else min(nodes, most)
        self.engine = make_engine(
            make_knobs(
                "radix",
                steps=steps,
                eagle_topk=topk,
                num_draft_tokens=num_nodes + 1,
                page_size=page_size,
                chunked_prefill_size=chunk,
                parallel=parallel,
                max_total_tokens=pool,
                preallocation=preallocation,
                preallocate_tokens=page_size,
                eviction_policy=eviction,
                swa_full_tokens_ratio=self.ratio,
            ),
            models=self.models,
        )
        self.count = 0
        self.live: dict[str, tuple[tuple[int, ...], int]] = {}

    @rule(which=st.integers(0, 7), cut=st.integers(0, 3), max_new=st.sampled_from([1, 2, 9, 25]))
    def add(self, which: int, cut: int, max_new: int) -> None:
        """Queue a prompt that shares a prefix with others."""
        prompt = shared_prefix_prompts()[which][: 120 + 16 * cut]
        name = f"q{self.count}"
        self.count += 1
        try:
            self.engine.add(make_request(name, prompt, max_new_tokens=max_new))
        except UsageError:
            return
        self.live[name] = (prompt, max_new)

    @precondition(lambda self: self.live)
    @rule(times=st.integers(1, 6))
    def step(self, times: int) -> None:
        """Run some steps; whoever ends has said what plain decoding says."""
        for _ in range(times):
            for observation in self.engine.step().ended:
                self.check_ended(observation)
            self.check_content()

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        """Cancel somebody, between chunks or while decoding."""
        name = data.draw(st.sampled_from(sorted(self.live)))
        self.check_ended(self.engine.abort(name))
        self.check_content()

    @precondition(lambda self: self.live)
    @rule(verb=st.sampled_from(["checkpoint", "detach", "try_reserve"]), is_done=st.booleans())
    def break_off(self, verb: str, is_done: bool) -> None:
        """Interrupt a step before or after it moves pages, and go on: nobody loses a token."""
        storage = self.engine.storage
        move = getattr(storage, verb)

        def interrupted(*args: object) -> object:
            if is_done:
                move(*args)
            raise KeyboardInterrupt

        setattr(storage, verb, interrupted)
        ended: list[RequestObservation] = []
        with suppress(KeyboardInterrupt):
            ended += self.engine.step().ended  # whole where the step did not come so far
        delattr(storage, verb)
        ended += self.engine.step().ended
        for observation in ended:
            self.check_ended(observation)
        self.check_content()

    def check_ended(self, observation: RequestObservation) -> None:
        """Delivered tokens are a prefix of plain decoding, all of it unless cut short."""
        prompt, max_new = self.live.pop(observation.request_id)
        expected = expected_output(prompt, max_new, self.window)
        got = observation.output_token_ids
        assert expected[: len(got)] == got
        if observation.finish_reason == "length":
            assert len(expected) == len(got)

    def check_content(self) -> None:
        """Every committed slot holds what a cold pass puts there."""
        for request in self.engine.scheduler.running:
            self.check_request(request)

    def check_request(self, request: EngineRequest) -> None:
        """Compare one request's KV with the cold pass over its known tokens."""
        assert request.draft_valid_len == request.num_written
        known = tuple(request.known_tokens.tolist())
        if not request.num_written:
            return
        cold_target, cold_draft = cold_pools(known, self.window)
        slots = request.held.slots(0, request.num_written)
        windows = None if self.window is None else self.engine.storage.pages.window_slots(slots)
        layers = self.models.target.num_layers
        assert_same_kv(self.engine.target_pool, slots, cold_target, layers, windows)
        settled = min(request.draft_valid_len, len(known) - 1)
        if cold_draft is not None and self.engine.draft_pool is not None:
            assert_same_kv(self.engine.draft_pool, slots[:settled], cold_draft, 1)

    def teardown(self) -> None:
        """Nothing is lost: after everybody has gone and a flush, all pages are free."""
        if not hasattr(self, "engine"):
            return
        self.engine.abort_all()
        self.engine.storage.cache.evict(self.engine.storage.cache.num_evictable_pages)
        pages = self.engine.storage.pages
        assert pages.num_pages == pages.num_free
        if isinstance(pages, PagePairAllocator):
            assert pages.window_pages.num_pages == pages.window_pages.num_free


EngineHistory.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestEngineHistory = EngineHistory.TestCase


class TreeHistory(EngineHistory):
    """Trees: accepted nodes move to the front, scratch comes and goes."""

    topks = (2, 4)


class SmallWindowHistory(EngineHistory):
    """A window of five beside a scarce pool of its own: window pages are evicted all the time."""

    window = 5
    ratio = 0.35
    topks = (1, 3)


class WideWindowHistory(EngineHistory):
    """A window of 33, no multiple of any page."""

    window = 33
    ratio = 0.6
    topks = (1, 3)


for history in (TreeHistory, SmallWindowHistory, WideWindowHistory):
    history.TestCase.settings = settings(
        max_examples=15,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
TestTreeHistory = TreeHistory.TestCase
TestSmallWindowHistory = SmallWindowHistory.TestCase
TestWideWindowHistory = WideWindowHistory.TestCase
