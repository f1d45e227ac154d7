"""Pooled counts, three acceptance lengths, and a split that adds up."""

from dataclasses import replace
from math import log
from pathlib import Path

import pytest

from eaglebench.records.measured import MeasuredBlock, MeasuredTurn
from eaglebench.records.observation import StepTimes
from eaglebench.stats.acceptance import (
    acceptance_by_context,
    acceptance_by_position,
    accepted_at,
    pool,
    speed,
)
from eaglebench.stats.signflip import sign_flip_p_value
from eaglebench.store.decode import measured_turns
from tests.fakes import Plant, ScriptedRuntime
from tests.sessions import make_folder, make_session, make_talk, make_talks
from tests.turns import make_step, make_turn


def make_turns(root: Path) -> list[MeasuredTurn]:
    """Turns of a toy run in one arm."""
    folder = make_folder(root)
    make_session(ScriptedRuntime(), folder, make_talks(3), arms=("no-cache",)).run()
    return measured_turns(folder)


def make_block(
    arm: str, *, tokens: int, steps: int, wall_s: float, decode_s: float
) -> MeasuredBlock:
    """A timed block."""
    times = StepTimes(
        prefill_s=0.1,
        mixed_s=0.0,
        decode_s=decode_s,
        prefill_steps=1,
        mixed_steps=0,
        decode_steps=10,
    )
    return MeasuredBlock(
        cell_id="c",
        arm=arm,
        pass_index=0,
        block=0,
        order=0,
        question_ids=("q",),
        output_tokens=tokens,
        verify_steps=steps,
        wall_s=wall_s,
        times=times,
    )


def test_lengths_are_ratios_of_sums(tmp_path: Path) -> None:
    """Not means of ratios; the bonus counts, prefill's token only in SGLang's."""
    turns = make_turns(tmp_path)
    counts = pool(turns)
    steps = sum(len(turn.steps) for turn in turns)
    output = sum(len(turn.output_token_ids) for turn in turns)
    accepted = sum(sum(turn.accepted_per_step or ()) for turn in turns)

    assert counts.acceptance_length == (output - len(turns)) / steps
    assert counts.al_sglang == output / steps
    assert counts.al_vllm == 1 + accepted / steps
    assert (counts.emitted or 0) == (counts.accepted or 0) + steps - (counts.overrun or 0)


def make_uneven_turns() -> list[MeasuredTurn]:
    """Two turns whose five steps accept 2, 0, 2, 1 and 0; the last one carried no draft.

    Two of the third step's tokens were cut, so 8 came from steps, and 2 from prefill.
    """
    cut = make_step(14, (6, 7), (6, 7, 0), 2, emitted=1)
    return [
        make_turn(make_step(10, (3, 4), (3, 4, 5), 2), make_step(13, (5, 6), (1, 0, 0), 0), cut),
        make_turn(make_step(10, (3, 4), (3, 9, 0), 1), make_step(12, (), (7,), 0)),
    ]


def test_three_lengths_by_hand() -> None:
    """8 tokens in 5 steps; 10 with prefill's; 5 accepted in the 4 steps that carried drafts."""
    counts = pool(make_uneven_turns())

    assert (counts.emitted, counts.output_tokens, counts.verify_steps) == (8, 10, 5)
    assert (counts.accepted, counts.overrun, counts.num_drafts) == (5, 2, 4)
    assert counts.acceptance_length == 8 / 5
    assert counts.al_sglang == 10 / 5
    assert counts.al_vllm == 1 + 5 / 4


def test_positions_by_hand() -> None:
    """Of four steps with drafts, three accepted the first draft and two the second as well."""
    turns = make_uneven_turns()

    assert accepted_at(turns) == (3, 2)
    assert acceptance_by_position(turns) == (3 / 4, 2 / 4)
    assert 1 + sum(acceptance_by_position(turns)) == pool(turns).al_vllm


def test_positions_of_a_tree_are_levels() -> None:
    """Four nodes on two levels have two positions."""
    tree = make_step(10, (3, 4, 5, 6), (3, 9, 0, 0, 0), 1, parents=(-1, -1, 0, 0))

    assert accepted_at([make_turn(tree)]) == (1, 0)


def test_without_a_verify_step_there_is_no_length() -> None:
    """None, not zero."""
    counts = pool([])

    assert counts.acceptance_length is None
    assert counts.al_sglang is None
    assert counts.al_vllm is None
    assert acceptance_by_position([]) == ()


def test_failed_and_unmeasured_turns_do_not_count(tmp_path: Path) -> None:
    """Donors and failures are in the record, not in the headline."""
    turns = make_turns(tmp_path)
    left_out = [replace(turns[0], is_measured=False), replace(turns[1], error="too long")]

    assert pool([*turns[2:], *left_out]) == pool(turns[2:])


def test_acceptance_by_position_falls(tmp_path: Path) -> None:
    """A later draft can only be accepted after an earlier one."""
    first, second = acceptance_by_position(make_turns(tmp_path))

    assert 1 >= first >= second > 0


def test_throughput_is_the_product_of_its_factors() -> None:
    """The logs of the three ratios add up to the log of the throughput ratio."""
    mine = speed([make_block("radix", tokens=240, steps=100, wall_s=2.0, decode_s=1.5)])
    theirs = speed([make_block("no-cache", tokens=230, steps=105, wall_s=2.5, decode_s=2.0)])
    assert mine is not None
    assert theirs is not None
    parts = [
        log(a / b)
        for a, b in (
            (mine.al_sglang, theirs.al_sglang),
            (mine.step_rate, theirs.step_rate),
            (mine.decode_share, theirs.decode_share),
        )
        if a and b
    ]

    assert sum(parts) == pytest.approx(log(mine.tokens_per_s / theirs.tokens_per_s))


def test_no_block_no_speed() -> None:
    """Nothing timed is None."""
    assert speed([]) is None


def test_sign_flip_finds_a_planted_loss(tmp_path: Path) -> None:
    """One guess less in every question is significant; equal arms give 1."""
    folder = make_folder(tmp_path)
    talks = [make_talk(f"q{n}", f"odd question {n}") for n in range(20)]
    plants = [Plant(word="odd", output_index=index) for index in (4, 8, 12, 16)]
    runtime = ScriptedRuntime({"unigram": plants})
    make_session(runtime, folder, talks, arms=("unigram", "radix", "no-cache")).run()
    turns = measured_turns(folder)
    by_arm = {a: [t for t in turns if t.arm == a] for a in ("unigram", "radix", "no-cache")}

    worse = sign_flip_p_value(by_arm["unigram"], by_arm["radix"])
    assert worse is not None
    assert worse < 0.01
    assert sign_flip_p_value(by_arm["radix"], by_arm["no-cache"]) == 1.0
    assert sign_flip_p_value([], by_arm["radix"]) is None


@pytest.mark.parametrize(
    ("accepted", "chance"), [((0, 0, 0), 1 / 8), ((2, 2, 2), 1.0), ((0, 0, 2), 1 / 2)]
)
def test_only_losses_are_surprising(accepted: tuple[int, ...], chance: float) -> None:
    """Three questions of one step that accepted one draft before: 8 ways to set the signs.

    Three losses come up in one of them, three gains or more of a loss in all. Two losses of one
    token and a gain of one: their mean lies as low in 4 of 8.
    """
    before = [make_turn(make_step(10, (3, 4), (3, 4, 5), 1), question_id=n) for n in "abc"]
    after = [
        make_turn(make_step(10, (3, 4), (3, 4, 5), count), question_id=name)
        for count, name in zip(accepted, "abc", strict=True)
    ]

    assert sign_flip_p_value(after, before) == pytest.approx(chance)


def test_contexts_fall_into_classes_that_double(tmp_path: Path) -> None:
    """By position of the root; each class is pooled, and the classes make up the whole."""
    (turn, *_) = make_turns(tmp_path)
    (step, *_) = turn.steps
    ends = {0: 1, 255: 2, 256: 3, 511: 1, 512: 1, 5000: 4}
    steps = tuple(replace(step, position=p, emitted=e) for p, e in ends.items())

    found = acceptance_by_context([replace(turn, steps=steps)])

    assert [(c.below, c.emitted, c.verify_steps) for c in found] == [
        (256, 3, 2),
        (512, 4, 2),
        (1024, 1, 1),
        (8192, 4, 1),
    ]
    assert found[0].acceptance_length == 1.5
    assert acceptance_by_context([replace(turn, steps=steps, is_measured=False)]) == ()
