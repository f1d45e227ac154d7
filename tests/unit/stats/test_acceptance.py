"""Pooled counts, three acceptance lengths, and a split that adds up."""

from dataclasses import replace
from math import log
from pathlib import Path

import pytest

from eaglebench.contracts.measured import MeasuredBlock, MeasuredTurn
from eaglebench.contracts.observation import StepTimes
from eaglebench.stats.acceptance import (
    acceptance_by_context,
    acceptance_by_position,
    pool,
    speed,
)
from eaglebench.stats.signflip import sign_flip_p_value
from eaglebench.store.decode import measured_turns
from tests.fakes import Plant, ScriptedRuntime
from tests.sessions import make_folder, make_session, make_talk, make_talks


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
        round=0,
        block=0,
        output_tokens=tokens,
        verify_steps=steps,
        wall_s=wall_s,
        times=times,
    )


def test_lengths_are_ratios_of_sums(tmp_path: Path) -> None:
    """Not means of ratios; the bonus counts, prefill's token only in SGLang's."""
    turns = make_turns(tmp_path)
    counts = pool(turns)
    steps = sum(len(turn.accepted_per_step) for turn in turns)
    output = sum(len(turn.output_token_ids) for turn in turns)
    accepted = sum(sum(turn.accepted_per_step) for turn in turns)

    assert counts.acceptance_length == (output - len(turns)) / steps
    assert counts.al_sglang == output / steps
    assert counts.al_vllm == 1 + accepted / steps
    assert counts.emitted == counts.accepted + steps - counts.overrun


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
