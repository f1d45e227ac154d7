"""Who runs, who waits, who has to go: the numbers worked out by hand."""

import pytest

from eaglebench.errors import UsageError
from eaglebench.records.knobs import EngineKnobs
from tests.dry_engine import TOKEN, DryEngine, tokens_of

ALL_ACCEPTED = (TOKEN,) * 4
"""What a verify step delivers when all three drafts are taken: three and the bonus."""


def make_engine(**knobs: object) -> DryEngine:
    """Chains of three drafts."""
    values: dict[str, object] = {"num_steps": 3, "num_draft_tokens": 4, **knobs}
    return DryEngine(EngineKnobs(**values))  # type: ignore[arg-type]  # checked by the dataclass


def add(engine: DryEngine, *lengths: int, max_new: int = 9) -> None:
    """Requests a, b, c .. with prompts of these lengths that share nothing."""
    for index, length in enumerate(lengths):
        engine.add("abcdef"[index], tokens_of(length, seed=index), max_new)


def test_the_youngest_is_preempted_and_goes_on_where_it_was() -> None:
    """74 slots for three requests of 16 + 1 tokens, four more a step.

    Step 1 writes 16 slots and holds 16 + 3 each: 57. Step 2 writes [16, 20) and holds 20 + 3 each:
    69. In step 3 each needs 27: a gets its 4 of the 5 that are free, b finds 1. c, the youngest,
    gives back its 3 look-ahead slots, and b has enough. c knows 16 + 1 + 4 = 21 tokens, of which 20
    are written and go to the tree; its resume may hit all but the last known token and the slot in
    front of it: 19.
    """
    engine = make_engine(parallel=3, max_total_tokens=74)
    add(engine, 16, 16, 16)
    engine.step()
    engine.step(ALL_ACCEPTED)

    third = engine.step(ALL_ACCEPTED)

    assert [row.request.request_id for row in third.verify] == ["a", "b"]
    tallies = {name: request.tally for name, request in engine.requests.items()}
    assert {name: tally.preemptions for name, tally in tallies.items()} == {"a": 0, "b": 0, "c": 1}
    assert tallies["c"].pages_returned == 3
    assert {request.request_id for request in engine.ended} == {"a", "b"}
    (resumed,) = engine.step(ALL_ACCEPTED).prefill
    assert (resumed.start, resumed.end, resumed.samples) == (19, 20, False)
    assert (tallies["c"].cached_tokens, tallies["c"].resumed_tokens) == (0, 19)
    engine.step(ALL_ACCEPTED)
    assert engine.ended[-1].output_ids == [TOKEN] * 9


def test_what_the_first_admission_found_stays_what_it_was() -> None:
    """A hit of 15 at the first admission is not replaced by that of the resume."""
    engine = make_engine(parallel=3, max_total_tokens=74)
    engine.add("before", tokens_of(16, seed=2), 1)
    engine.step()
    add(engine, 16, 16, 16)
    engine.step()
    assert engine.requests["c"].tally.cached_tokens == 15
    engine.step(ALL_ACCEPTED)

    while len(engine.ended) < 4:
        engine.step(ALL_ACCEPTED)

    tally = engine.requests["c"].tally
    assert tally.preemptions == 1
    assert tally.cached_tokens == 15
    assert tally.resumed_tokens > 15


def test_the_budget_of_a_step_is_shared() -> None:
    """Sixteen tokens a step: a takes 12 and leaves 4 for b, which takes the rest in the next."""
    engine = make_engine(parallel=2, chunked_prefill_size=16)
    add(engine, 12, 12)

    first, second = engine.step(), engine.step()

    assert [(row.start, row.end) for row in first.prefill] == [(0, 12), (0, 4)]
    assert [(row.start, row.end) for row in second.prefill] == [(4, 12)]
    assert [row.request.request_id for row in second.verify] == ["a"]


def test_a_running_prefill_goes_before_a_newcomer() -> None:
    """What a's last chunk leaves of the budget is b's first chunk."""
    engine = make_engine(parallel=2, chunked_prefill_size=16)
    add(engine, 40, 30)

    chunks = [[(r.request.request_id, r.start, r.end) for r in engine.step().prefill]]
    chunks += [[(r.request.request_id, r.start, r.end) for r in engine.step().prefill]]
    chunks += [[(r.request.request_id, r.start, r.end) for r in engine.step().prefill]]

    assert chunks == [[("a", 0, 16)], [("a", 16, 32)], [("a", 32, 40), ("b", 0, 8)]]


def test_nobody_overtakes_who_waits_for_room() -> None:
    """B does not fit beside a; c would, and waits behind b."""
    engine = make_engine(parallel=3, max_total_tokens=64)
    add(engine, 30, 40, 5, max_new=20)

    plan = engine.step()

    assert [row.request.request_id for row in plan.prefill] == ["a"]
    assert [request.request_id for request in engine.scheduler.waiting] == ["b", "c"]


def test_the_wall_of_the_pool_ends_a_lone_request_where_it_stands() -> None:
    """40 slots, a prompt of 20: verify steps need 27, 31, 35, 39 and then 43 slots.

    Four of them run, so 1 + 4 * 4 = 17 tokens are delivered; then nobody is left to preempt.
    """
    engine = make_engine(max_total_tokens=40)
    add(engine, 20, max_new=100)

    while not engine.ended:
        engine.step(ALL_ACCEPTED)

    (request,) = engine.ended
    assert (request.finish_reason, request.num_output) == ("capacity", 17)
    assert engine.storage.pages.num_free + engine.storage.cache.num_evictable_pages == 40


def test_what_can_never_run_is_refused_at_the_door() -> None:
    """No prompt, and one that needs more slots than there are, with both numbers."""
    engine = make_engine(max_total_tokens=40)

    with pytest.raises(UsageError, match="request a has an empty prompt"):
        engine.add("a", ())
    with pytest.raises(UsageError, match="needs 47 slots with look-ahead; the KV pool has 40"):
        engine.add("b", tokens_of(40))
    assert engine.scheduler.waiting == []


def test_there_is_room_for_as_many_as_run_at_a_time() -> None:
    """Waiting ones count; who leaves makes room, from either list."""
    engine = make_engine(parallel=2)
    scheduler = engine.scheduler
    had_room = [scheduler.has_room]
    add(engine, 8, 8)
    had_room.append(scheduler.has_room)

    engine.step()
    running, waiting = engine.requests["a"], engine.add("c", tokens_of(8, seed=3))
    scheduler.retire(waiting)
    had_room.append(scheduler.has_room)
    engine.storage.detach(running)
    scheduler.retire(running)

    assert [*had_room, scheduler.has_room] == [True, False, False, True]
    assert scheduler.waiting == []
    assert running not in scheduler.running


def test_the_youngest_gives_way_for_itself() -> None:
    """43 slots, two requests of 16 + 3: a takes 4 more of 5, b lacks 3 and has nobody behind it."""
    engine = make_engine(parallel=2, max_total_tokens=43)
    add(engine, 16, 16)
    engine.step()

    second = engine.step(ALL_ACCEPTED)

    assert [row.request.request_id for row in second.verify] == ["a"]
    (resumed,) = second.prefill  # what it gave back is room enough to start again
    assert (resumed.request.request_id, resumed.request.tally.preemptions) == ("b", 1)
