"""What requests borrow, own and leave behind, counted by hand."""

import numpy as np
import pytest

from eaglebench.engine.policy import EnginePolicy
from eaglebench.errors import InvariantError, UsageError
from eaglebench.kv.radix_cache import RadixCache
from eaglebench.kv.window import PagePairAllocator
from eaglebench.records.knobs import EngineKnobs
from tests.dry_engine import TOKEN, DryEngine, tokens_of

ALL_ACCEPTED = (TOKEN,) * 4


def make_engine(page_size: int = 1, window: int | None = None, **knobs: object) -> DryEngine:
    """Chains of three drafts."""
    values: dict[str, object] = {
        "num_steps": 3,
        "num_draft_tokens": 4,
        "page_size": page_size,
        **knobs,
    }
    return DryEngine(EngineKnobs(**values), window=window)  # type: ignore[arg-type]  # as above


def make_hybrid(arm: str = "radix") -> DryEngine:
    """Pages of four slots and a window of eight positions."""
    knobs = EngineKnobs(arm=arm, num_steps=3, num_draft_tokens=4, page_size=4, max_total_tokens=128)
    return DryEngine(knobs, policy=EnginePolicy(arm), window=8)


@pytest.mark.parametrize(
    ("page_size", "length", "expected"),
    [
        (16, 33, 32),
        (16, 34, 32),
        (16, 48, 32),
        (16, 49, 48),
        (16, 16, 0),
        (16, 17, 16),
        (4, 32, 28),
        (4, 33, 32),
        (1, 33, 32),
        (1, 2, 1),
        (1, 1, 0),
    ],
)
def test_a_resend_hits_all_but_its_last_token_in_whole_pages(
    page_size: int, length: int, expected: int
) -> None:
    """At least one token is computed again, for its logits: floor(L - 1) to the page."""
    engine = make_engine(page_size)
    prompt = tokens_of(length)
    engine.add("first", prompt, 1)
    engine.step()

    engine.add("again", prompt, 1)
    (row,) = engine.step().prefill

    assert engine.requests["first"].tally.cached_tokens == 0
    assert engine.requests["again"].tally.cached_tokens == expected
    assert (row.start, row.end) == (expected, length)


@pytest.mark.parametrize(("page_size", "expected"), [(1, 39), (4, 36), (16, 32)])
def test_a_branch_ends_one_slot_before_the_texts_part(page_size: int, expected: int) -> None:
    """Slot 39 is paired with token 40, which differs: 39 slots are shared, in whole pages."""
    engine = make_engine(page_size)
    donor = tokens_of(60)
    engine.add("donor", donor, 1)
    engine.step()

    engine.add("branch", (*donor[:40], *tokens_of(20, seed=1)), 1)
    engine.step()

    assert engine.requests["branch"].tally.cached_tokens == expected


def test_a_longer_prompt_hits_what_the_answer_left() -> None:
    """A prompt of 10 and 5 delivered tokens: 14 slots are written and settled, all can be hit."""
    engine = make_engine()
    prompt = tokens_of(10)
    engine.add("first", prompt, 5)
    engine.step()
    engine.step(ALL_ACCEPTED)
    (first,) = engine.ended
    assert first.num_output == 5

    engine.add("next", (*prompt, *[TOKEN] * 5, *tokens_of(8, seed=1)), 1)
    engine.step()

    assert engine.requests["next"].tally.cached_tokens == 14


def test_pages_of_a_life_are_counted_where_they_come_from_and_go_to() -> None:
    """Pages of 4, a prompt of 10, 5 tokens: 13 slots are 4 pages, 17 slots are 5.

    14 slots are written at the end, so 3 whole pages go to the tree and 2 are given back.
    """
    engine = make_engine(4)
    engine.add("r", tokens_of(10), 5)
    engine.step()
    engine.step(ALL_ACCEPTED)

    tally = engine.requests["r"].tally

    assert (tally.pages_allocated, tally.alloc_calls) == (5, 2)
    assert tally.pages_returned == 2
    assert engine.storage.cache.num_evictable_pages == 3
    assert tally.evictions == 0


def test_no_page_more_is_evicted_than_is_needed() -> None:
    """Four pages, each left by a text of its own: a prompt of one page evicts 1, one of two 2."""
    engine = make_engine(16, max_total_tokens=64)
    for number in range(4):
        engine.add(f"{number}", tokens_of(16, seed=number), 1)
        engine.step()
    assert engine.storage.pages.num_free == 0

    engine.add("one", tokens_of(16, seed=10), 1)
    engine.step()
    engine.add("two", tokens_of(32, seed=11), 1)
    engine.step()

    evictions = {name: each.tally.evictions for name, each in engine.requests.items()}
    assert evictions == {"0": 0, "1": 0, "2": 0, "3": 0, "one": 1, "two": 2}
    assert engine.storage.cache.num_evictable_pages == 4


@pytest.mark.parametrize(("page_size", "expected"), [(1, 6), (4, 4)])
def test_only_slots_with_valid_draft_kv_go_to_the_tree(page_size: int, expected: int) -> None:
    """Ten slots are written, the draft's KV is settled for six of them."""
    engine = make_engine(page_size)
    request = engine.make("r", tokens_of(20))
    engine.storage.attach(request)
    assert engine.storage.try_reserve(request, engine.storage.demand(request, 10, 0))
    request.num_written, request.draft_valid_len = 10, 6

    engine.storage.checkpoint(request)

    assert request.tree_owned_slots == expected
    key = engine.config.policy.make_key(np.array(tokens_of(20), dtype=np.int32), None)
    assert engine.storage.cache.lookup(key, 19).num_slots == expected


def test_pages_move_under_a_lock_or_not_at_all() -> None:
    """A request that was never attached has no receipt to move or give back."""
    engine = make_engine()
    request = engine.make("r", tokens_of(5))

    for verb in (engine.storage.checkpoint, engine.storage.detach):
        with pytest.raises(InvariantError, match="request r holds no lock to"):
            verb(request)


def test_an_idle_engine_knows_where_its_pages_are() -> None:
    """In the tree after a request; a page that nobody owns, or that is still locked, is a leak."""
    engine = make_engine(4, max_total_tokens=64)
    engine.storage.check_idle(is_fresh=True)
    engine.add("r", tokens_of(9), 1)
    engine.step()
    engine.storage.check_idle()
    with pytest.raises(InvariantError, match="2 pages are in the tree after a reset"):
        engine.storage.check_idle(is_fresh=True)

    engine.add("again", tokens_of(9), 9)
    engine.step()
    with pytest.raises(InvariantError, match="2 of the latter locked"):
        engine.storage.check_idle()
    lost = make_engine(4, max_total_tokens=64)
    lost.storage.pages.allocate(1)
    with pytest.raises(InvariantError, match="'free': 15, 'in the tree': 0"):
        lost.storage.check_idle()


def test_a_window_page_that_nobody_has_is_a_leak() -> None:
    """The full pool is whole, and one page of the other one is nobody's."""
    engine = make_hybrid()
    pages = engine.storage.pages
    assert isinstance(pages, PagePairAllocator)
    engine.storage.check_idle(is_fresh=True)
    pages.window_pages.allocate(1)

    with pytest.raises(InvariantError, match="1 pages of window layers were leaked"):
        engine.storage.check_idle()


@pytest.mark.parametrize(("arm", "pinned"), [("radix", 2), ("no-cache", 0)])
def test_windows_are_given_back_as_the_window_moves_on(arm: str, pinned: int) -> None:
    """20 slots of pages of 4, a window of 8: slot 13 is the first that is looked at, in page 3.

    Without a cache pages 0 to 2 give their windows back; with one they are the tree's, and may be
    evicted, while pages 3 and 4 stay pinned.
    """
    engine = make_hybrid(arm)
    pages = engine.storage.pages
    assert isinstance(pages, PagePairAllocator)
    request = engine.add("r", tokens_of(20), 9)
    engine.step()

    live = pages.is_live(request.held.pages)
    cache = engine.storage.cache
    assert live.tolist() == [arm == "radix"] * 3 + [True] * 3
    assert cache.num_evictable_windows == (3 if arm == "radix" else 0)
    assert pages.num_lost_windows(cache.num_evictable_windows + pinned) == len(live) - 3 - pinned


def test_a_long_prompt_fits_a_small_window_pool_chunk_by_chunk() -> None:
    """63 pages are wanted and 30 windows are there, of which 21 are held at once in chunks of 8."""
    whole, chunked = (
        make_engine(1, max_total_tokens=100, swa_full_tokens_ratio=0.3, window=5, **more)
        for more in ({}, {"chunked_prefill_size": 8})
    )

    with pytest.raises(UsageError, match="in window layers at once"):
        whole.add("r", tokens_of(60))
    chunked.add("r", tokens_of(60))
    (row,) = chunked.step().prefill
    assert (row.start, row.end) == (0, 8)


def test_who_waits_for_room_has_hit_nothing() -> None:
    """It asks anew in every step; the hit counts once, when it goes on from it."""
    engine = make_engine(16, max_total_tokens=96, parallel=2, eviction_policy="lfu")
    engine.add("donor", tokens_of(33), 1)
    engine.step()
    cache = engine.storage.cache
    assert isinstance(cache, RadixCache)
    (node,) = cache.tree.nodes()
    engine.add("long", tokens_of(40, seed=1), 12)
    engine.step()
    engine.add("waits", (*tokens_of(33), *tokens_of(20, seed=2)), 1)
    hits = []
    while len(engine.ended) < 3:
        engine.step()
        hits.append(node.use.hits)

    assert (hits[0], hits[-1], len(hits) > 5) == (0, 1, True)
