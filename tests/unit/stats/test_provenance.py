"""Who wrote a cached slot, on histories small enough to be worked out on paper."""

from typing import Any

import pytest

from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.measured import MeasuredTurn
from eaglebench.stats.provenance import History, Reading, seams_of
from tests.turns import make_step, make_turn

DONOR = (1, 2, 3, 4, 5, 6)
MINE = (1, 2, 3, 4, 9, 8)
ROOT = 6


def make(
    name: str, prompt: tuple[int, ...], cached: int = 0, block: int = 0, **changes: Any
) -> MeasuredTurn:
    """A turn of one step behind a prompt, and an answer of two tokens."""
    counters = {"cached_tokens": cached} | changes.pop("counters", {})
    values = {"prompt_token_ids": prompt, "question_id": name, "block": block} | changes
    return make_turn(
        make_step(len(prompt), (50, 51), (60, 61, 62), 0),
        output=(40, 60),
        counters=counters,
        **values,
    )


def read(*turns: MeasuredTurn) -> Reading:
    """What the only step of the last turn read."""
    return History(turns, turns[-1]).reading(0, turns[-1].steps[0].position + 1)


def told(reading: Reading) -> list[tuple[int, str, int | None, int | None]]:
    """The suspects."""
    return [(s.position, str(s.suspicion), s.then, s.now) for s in reading.suspects]


def writers(reading: Reading) -> list[list[str]]:
    """Names of who may have written each cached slot."""
    return [
        [turn.question_id for turn in slot.writers or ()]
        for slot in reading.slots
        if slot.origin == "cached"
    ]


def test_pairs_name_one_slot_less_than_tokens() -> None:
    """Four tokens are shared, so three slots are, and none of them is suspected."""
    reading = read(make("a", DONOR), make("b", MINE, cached=3, block=1))

    assert reading.hit is not None
    assert (reading.hit.cached, reading.hit.shared, reading.hit.allowed) == (3, 4, 3)
    assert told(reading) == []
    assert writers(reading) == [["a"], ["a"], ["a"]]
    assert [slot.origin for slot in reading.slots[3:]] == ["prefill"] * 3


def test_a_slot_more_was_written_with_another_next_token() -> None:
    """Slot 3 holds token 4 before token 5; here 9 follows. The arm's name is not asked."""
    reading = read(make("a", DONOR), make("b", MINE, cached=4, block=1))

    assert told(reading) == [(3, "next-token", 5, 9)]


def test_stale_slots_in_the_middle_of_a_hit_are_found() -> None:
    """The first writer of slot 3 went on otherwise, though a later one went on as here."""
    between = make("b", (*MINE, 7), cached=4, block=1)

    reading = read(make("a", DONOR), between, make("c", (*MINE, 7, 7), cached=6, block=2))

    assert told(reading) == [(3, "next-token", 5, 9)]
    assert writers(reading) == [["a"]] * 4 + [["b"]] * 2


def test_pages_are_shared_whole() -> None:
    """With pages of 2 and pairs, four shared tokens give one page; two need the token key."""
    pages: dict[str, Any] = {"knobs": EngineKnobs(page_size=2)}

    sound = read(make("a", DONOR, **pages), make("b", MINE, cached=2, block=1, **pages))
    faulty = read(make("a", DONOR, **pages), make("b", MINE, cached=4, block=1, **pages))

    assert sound.hit is not None
    assert sound.hit.allowed == 2
    assert told(sound) == []
    assert told(faulty) == [(3, "next-token", 5, 9)]


def test_tokens_that_nobody_had_are_no_key_of_any_kind() -> None:
    """More was cached than any earlier request shares."""
    reading = read(make("a", DONOR), make("b", MINE, cached=5, block=1))

    assert told(reading)[-1] == (4, "other-tokens", None, None)


def test_side_by_side_or_evicted_writers_are_all_named() -> None:
    """Where the first of several is not known none is claimed, and why is said."""
    batch: dict[str, Any] = {"knobs": EngineKnobs(parallel=4)}
    both = (make("a", DONOR, **batch), make("c", (*DONOR, 7), **batch))
    in_batch = read(*both, make("b", DONOR, cached=4, **batch))
    lost: dict[str, Any] = {"counters": {"evictions": 2, "cached_tokens": 0}}
    evicted = read(
        make("a", DONOR, **lost), make("c", DONOR, block=1), make("b", DONOR, cached=4, block=2)
    )

    assert writers(in_batch) == writers(evicted) == [["a", "c"]] * 4
    assert "--parallel 4" in in_batch.unknown[0]
    assert "evicted" in evicted.unknown[0]


def test_a_preempted_request_has_slots_of_unknown_writers() -> None:
    """What it took when it went on is not recorded."""
    lost: dict[str, Any] = {"counters": {"preemptions": 1, "cached_tokens": 3}}

    reading = read(make("a", DONOR), make("b", MINE, block=1, **lost))

    assert [slot.writers for slot in reading.slots[:3]] == [None] * 3
    assert "preempted 1 times" in reading.unknown[0]


def test_other_arms_cells_and_passes_write_nothing_here() -> None:
    """Each has a tree of its own, empty when a pass begins."""
    changes: tuple[dict[str, Any], ...] = ({"arm": "x"}, {"cell_id": "y"}, {"pass_index": 1})
    strangers = [make("a", DONOR, **change) for change in changes]

    reading = read(*strangers, make("b", DONOR, cached=2, block=1))

    assert [kind for _, kind, _, _ in told(reading)] == ["other-tokens"] * 2


def test_recorded_seams_are_held_against_the_prompt() -> None:
    """A seam made with the prompt's own token is sound; another token is named, own or cached."""
    seams: dict[str, Any] = {"seam_slots": (1, 3), "seam_successors": (3, 77)}
    donor = make("a", DONOR, **seams)

    assert told(read(donor)) == [(3, "seam", 77, 5)]
    assert told(read(donor, make("b", DONOR, cached=4, block=1))) == [(3, "seam", 77, 5)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"knobs": EngineKnobs(chunked_prefill_size=2)}, {2: None, 4: None}),
        ({"knobs": EngineKnobs()}, {}),
        ({"knobs": EngineKnobs(chunked_prefill_size=2, parallel=4)}, None),
    ],
)
def test_seams_without_a_record_are_inferred_or_unknown(
    changes: dict[str, Any], expected: dict[int, int | None] | None
) -> None:
    """From the end of the hit in steps of a chunk, where nobody else shares the budget."""
    assert seams_of(make("a", DONOR, cached=1, **changes)) == expected


def test_kept_proposals_are_those_in_front_of_the_last_accepted() -> None:
    """Of 3 drafts the head wrote the first 2; both accepted, all but the last slot is kept."""
    step = make_step(ROOT, (50, 51, 52), (50, 51, 60, 61), 2)
    turn = make_turn(
        step,
        make_step(9, (1,), (2, 3), 0),
        output=(40, 50, 51, 60, 2),
        prompt_token_ids=DONOR,
        arm="kv-reuse",
    )

    reading = History([turn], turn).reading(1, 10)

    assert told(reading) == [(6, "kept-proposal", None, None), (7, "kept-proposal", None, None)]


@pytest.mark.parametrize(("parallel", "past"), [(1, (9, 10)), (4, (9, 10))])
def test_slots_past_the_reservation(parallel: int, past: tuple[int, ...]) -> None:
    """Step 0 wrote slots 6 to 8, so those a longer proposal read behind them were not reserved."""
    turn = make_turn(
        make_step(ROOT, (50, 51), (50, 51, 60), 2),
        make_step(9, (1, 2, 3, 4), (5, 6, 7, 8, 9), 0),
        output=(40, 50, 51, 60, 5),
        prompt_token_ids=DONOR,
        arm="no-lookahead",
        knobs=EngineKnobs(arm="no-lookahead", parallel=parallel, num_steps=4, num_draft_tokens=5),
        seam_slots=(),
        seam_successors=(),
    )

    assert History([turn], turn).reading(1, 12).past == past
    assert History([turn], turn).reading(1, 10).past == ()
    assert History([turn], turn).reading(1, 11).past == past[:1] * (parallel > 1)
