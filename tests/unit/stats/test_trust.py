"""Which results can't be trusted, and why."""

from dataclasses import replace

import pytest

from eaglebench.records.doubt import Doubt
from eaglebench.records.generation import FinishReason
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.measured import MeasuredRun, MeasuredTurn
from eaglebench.stats.trust import doubts_of
from tests.turns import make_step, make_turn

GOOD = make_turn(make_step(10, (3, 4), (3, 4, 5), 2))


def make_run(*turns: MeasuredTurn, status: str = "done") -> MeasuredRun:
    """A run of these turns."""
    return MeasuredRun(
        run_id="run",
        status=status,
        started="",
        suite={"name": "toy", "version": 1},
        config={},
        models={"dtype": "float32"},
        git=None,
        environment={},
        tau={},
        turns=turns,
        blocks=(),
    )


def named(turn: MeasuredTurn, *questions: str) -> list[MeasuredTurn]:
    """The same turn for each of these questions."""
    return [replace(turn, question_id=name) for name in questions]


def only(*turns: MeasuredTurn) -> Doubt:
    """The one doubt about a finished run."""
    (doubt,) = doubts_of(make_run(*turns))
    return doubt


def test_verify_steps_that_are_gone_are_said() -> None:
    """Counts alone show no positions and no near-ties; the turn knows how many steps it took."""
    doubt = only(*named(GOOD, "q1"), replace(GOOD, question_id="q2", steps=()))

    assert (doubt.kind, doubt.is_fatal, doubt.questions) == ("lost-steps", True, ("q2",))
    assert "the verify steps of 1 of 2 turns are missing" in doubt.text


def test_a_good_run_raises_no_doubt() -> None:
    """Nor does one whose passes repeat each other."""
    assert doubts_of(make_run(GOOD, replace(GOOD, pass_index=1))) == []


def test_failed_turns_are_counted_with_their_cause() -> None:
    """`3 of 10 turns failed: reason`, the commonest cause first, and the questions."""
    broken = replace(GOOD, error="the target gave NaN", finish_reason="failed")
    other = replace(broken, error="too long")
    doubt = only(*named(GOOD, *"abcdefg"), *named(broken, "x", "y"), *named(other, "z"))

    assert (doubt.kind, doubt.is_fatal, doubt.questions) == ("failed", True, ("x", "y", "z"))
    assert doubt.sentence.startswith(
        "page1 radix: 3 of 10 turns failed: the target gave NaN (and 1 other reason)"
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("capacity", "1 of 3 answers were cut short by a full KV pool; raise --max-total-tokens"),
        ("aborted", "1 of 3 answers were aborted (c/1 after 4 tokens)"),
    ],
)
def test_answers_that_were_cut_are_no_answers(reason: FinishReason, words: str) -> None:
    """Out of KV is no success; an answer that reached its limit is one."""
    doubt = only(*named(GOOD, "a", "b"), replace(GOOD, question_id="c", finish_reason=reason))

    assert (doubt.kind, doubt.is_fatal, doubt.questions) == (reason, True, ("c",))
    assert words in doubt.text


@pytest.mark.parametrize("reason", ["stop", "length", "context"])
def test_answers_that_ended_where_they_should_raise_no_doubt(reason: FinishReason) -> None:
    """At an end token, at the limit that was asked for, at the model's own."""
    assert doubts_of(make_run(replace(GOOD, finish_reason=reason))) == []


def test_an_arm_without_an_answer_measured_nothing() -> None:
    """In one arm of two."""
    broken = replace(GOOD, error="x", finish_reason="failed", arm="no-cache")

    kinds = {(doubt.arm, doubt.kind) for doubt in doubts_of(make_run(GOOD, broken))}
    assert kinds == {("no-cache", "failed"), ("no-cache", "nothing")}


def test_without_a_verify_step_there_is_nothing_to_divide_by() -> None:
    """Answers of one token, which prefill samples."""
    assert only(make_turn()).kind == "no-steps"


def test_a_run_that_was_not_run_to_its_end_says_so() -> None:
    """Of the whole run, not of a cell."""
    (doubt,) = doubts_of(make_run(GOOD, status="partial"))

    assert (doubt.kind, doubt.cell_id) == ("unfinished", "*")


def test_a_reset_that_does_nothing_is_seen_in_the_cached_tokens() -> None:
    """The same answers, but later passes find what the first one left: 3, 5, 5 cached tokens."""
    passes = [
        make_turn(*GOOD.steps, counters={"cached_tokens": cached}, pass_index=number)
        for number, cached in enumerate((3, 5, 5))
    ]

    doubt = only(*passes)

    assert (doubt.kind, doubt.is_fatal) == ("passes", True)
    assert "cached tokens 3, 5, 5 by pass" in doubt.text


def test_other_answers_in_a_later_round_are_a_doubt() -> None:
    """The engine is exact, so a pass that answers otherwise is broken."""
    doubt = only(GOOD, replace(make_turn(make_step(10, (3, 4), (3, 1, 0), 1)), pass_index=1))

    assert doubt.kind == "passes"
    assert "other tokens or steps" in doubt.text


def test_a_drafter_that_never_speaks_is_remarked_on_as_well() -> None:
    """Plain decoding has none to remark on."""
    turn = make_turn(*(make_step(10 + number, (), (0,), 0) for number in range(64)))
    plain = replace(turn, knobs=EngineKnobs(num_steps=0, num_draft_tokens=1))

    assert [doubt.kind for doubt in doubts_of(make_run(turn))] == ["idle-drafter"]
    assert doubts_of(make_run(plain)) == []


@pytest.mark.parametrize(("arm", "count"), [("radix", 1), ("radix:again", 1), ("unigram", 0)])
def test_a_drafter_that_accepts_next_to_nothing_is_remarked_on(arm: str, count: int) -> None:
    """Not of a planted fault; the numbers are right, so nothing is taken away."""
    steps = [make_step(10 + number, (3, 4), (9, 0, 0), 0) for number in range(63)]
    turn = make_turn(*steps, make_step(73, (3, 4), (3, 9, 0), 1), arm=arm)

    doubts = doubts_of(make_run(turn))

    assert [doubt.kind for doubt in doubts] == ["idle-drafter"] * count
    assert not any(doubt.is_fatal for doubt in doubts)
    assert all("1.016" in doubt.text for doubt in doubts)
