"""What the check before a run lets pass can run; what it refuses can't."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from eaglebench.errors import UsageError
from eaglebench.records.knobs import EngineKnobs
from tests.dry_engine import DryEngine, pools, tokens_of

MANY = settings(max_examples=200, deadline=None)


def run_alone(engine: DryEngine) -> str:
    """Steps until the only request is verified once or has ended; says which."""
    for _ in range(300):
        plan = engine.step()
        if plan.verify:
            return "verified"
        if engine.ended:
            return str(engine.ended[0].finish_reason)
    raise AssertionError("neither verified nor ended")


@MANY
@given(pools(), st.integers(1, 200), st.sampled_from([1, 2, 24]))
def test_a_prompt_that_passes_is_verified_or_ended_by_its_first_token(
    pool: tuple[EngineKnobs, int, int | None], length: int, max_new: int
) -> None:
    """In all pages, shapes, windows, chunks and preallocations; never `capacity` before that."""
    knobs, context_length, window = pool
    engine = DryEngine(knobs, context_length=context_length, window=window)
    obstacle = engine.room.obstacle(length, max_new)
    if obstacle is not None:
        with pytest.raises(UsageError):
            engine.add("r", tokens_of(length), max_new)
        return
    engine.add("r", tokens_of(length), max_new)

    ending = run_alone(engine)

    is_over_at_once = max_new == 1 or length + 1 == context_length
    assert ending == ("verified" if not is_over_at_once else ending)
    assert ending in {"verified", "length", "context"}


@MANY
@given(pools(), st.integers(1, 200), st.sampled_from([1, 2, 24]))
def test_a_prompt_that_is_refused_for_its_slots_could_not_be_verified(
    pool: tuple[EngineKnobs, int, int | None], length: int, max_new: int
) -> None:
    """Put into the queue all the same, it ends with `capacity`: nothing is refused in vain.

    Window pages are bounded from above, so this is asked of pools without them.
    """
    knobs, context_length, _ = pool
    engine = DryEngine(knobs, context_length=context_length)
    if length >= context_length or engine.room.obstacle(length, max_new) is None:
        return
    request = engine.make("r", tokens_of(length), max_new)
    engine.scheduler.queue(request)

    assert run_alone(engine) == "capacity"


@pytest.mark.parametrize(
    ("length", "needed"),
    [
        # a chain of 10: prompt, root, 10 drafts, 10 slots of the next proposal
        (234, None),
        (235, 256),
        (245, 266),
    ],
)
def test_numbers_of_a_pool_of_255_slots(length: int, needed: int | None) -> None:
    """234 + 1 + 10 + 10 = 255 fit, one token more does not; both numbers are named."""
    knobs = EngineKnobs(num_steps=10, num_draft_tokens=11, max_total_tokens=255)
    room = DryEngine(knobs, context_length=4096).room

    obstacle = room.obstacle(length, 24)

    if needed is None:
        assert obstacle is None
    else:
        assert obstacle == (
            f"prompt of {length} tokens needs {needed} slots with look-ahead; the KV pool has 255"
        )


def test_window_pools_are_named() -> None:
    """Without chunks a prompt of 50 and 6 slots of proposal need 57 window slots; there are 51."""
    knobs = EngineKnobs(
        num_steps=3,
        num_draft_tokens=4,
        max_total_tokens=512,
        swa_full_tokens_ratio=0.1,
    )
    engine = DryEngine(knobs, window=8)

    assert engine.room.obstacle(48, 24) is None
    assert engine.room.obstacle(49, 24) == (
        "prompt of 49 tokens needs 56 slots with look-ahead, 52 of them in window layers at once; "
        "their KV pool has 51"
    )
