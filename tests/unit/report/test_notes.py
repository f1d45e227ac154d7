"""Remarks on heads, contexts and tokens without text, from the turns of a run."""

from dataclasses import replace
from pathlib import Path

from eaglebench.records.measured import MeasuredTurn
from eaglebench.report.notes import (
    context_notes,
    head_notes,
    precision_notes,
    pressure_notes,
    text_notes,
)
from eaglebench.report.rows import make_rows
from eaglebench.stats.tau import Tau
from eaglebench.store.decode import measured_turns
from tests.fakes import ScriptedRuntime
from tests.sessions import make_folder, make_session, make_talk, make_talks
from tests.toy_pools import Pressure


def make_turns(root: Path, shift: int = 0) -> list[MeasuredTurn]:
    """Turns of a toy run in two arms, every other step moved by so many positions."""
    folder = make_folder(root)
    make_session(ScriptedRuntime(), folder, make_talks(2)).run()
    return [
        replace(
            turn,
            steps=tuple(
                replace(step, position=step.position + shift * (number % 2))
                for number, step in enumerate(turn.steps)
            ),
        )
        for turn in measured_turns(folder)
    ]


def test_arms_that_agree_share_a_line_about_contexts(tmp_path: Path) -> None:
    """One line a cell, with a length for each class of contexts."""
    (note,) = context_notes(make_turns(tmp_path, shift=300))

    assert "radix, no-cache: acceptance length by tokens of context: " in note
    assert " below 256, " in note
    assert note.endswith(" below 512")


def test_one_class_of_contexts_is_no_news(tmp_path: Path) -> None:
    """The table says it already."""
    assert context_notes(make_turns(tmp_path)) == []


def test_several_cells_are_too_many_lines(tmp_path: Path) -> None:
    """A run over several cells says nothing about contexts."""
    turns = make_turns(tmp_path, shift=300)
    elsewhere = [replace(turn, cell_id="page16") for turn in turns]

    assert context_notes([*turns, *elsewhere]) == []


def test_steps_past_a_heads_positions_are_counted(tmp_path: Path) -> None:
    """Those that carried no draft, of all that could have."""
    turns = make_turns(tmp_path)
    limit = 1 + min(step.position for turn in turns for step in turn.steps)
    silent = [
        replace(turn, steps=tuple(replace(step, drafted_ids=()) for step in turn.steps))
        for turn in turns
    ]
    count = sum(len(turn.steps) for turn in turns)

    (note,) = head_notes({"draft_positions": limit}, silent)

    assert f"{count} of {count} verify steps" in note
    assert head_notes({"draft_positions": limit}, turns) == []
    assert head_notes({"draft_positions": None}, silent) == head_notes({}, silent) == []


def test_tokens_without_text_are_counted(tmp_path: Path) -> None:
    """Against the size that the run recorded; older records have none."""
    turns = make_turns(tmp_path)
    largest = max(token for turn in turns for token in turn.output_token_ids)

    (note,) = text_notes({"tokenizer_size": largest, "vocab_size": 999}, turns)

    assert "no text: the model knows 999 ids" in note
    assert text_notes({"tokenizer_size": largest + 1, "vocab_size": 999}, turns) == []
    assert text_notes({"vocab_size": 999}, turns) == []


def test_preemptions_and_evictions_are_told_once_a_cell(tmp_path: Path) -> None:
    """Summed over the questions, arm by arm; silence where there were none."""
    runtime = ScriptedRuntime(
        pressures=[
            Pressure(word="item 1", evictions=40),
            Pressure(word="item 2", preemptions=3, resumed_tokens=70),
        ]
    )
    folder, calm = make_folder(tmp_path), make_folder(tmp_path)
    talks = [make_talk(f"q{n}", f"item {n}") for n in range(3)]
    make_session(runtime, folder, talks).run()
    make_session(ScriptedRuntime(), calm, talks).run()

    (note,) = pressure_notes(measured_turns(folder))

    told = "3 preemptions (70 tokens found again), 40 evicted pages"
    assert note.endswith(f": radix {told}; no-cache {told}")
    assert pressure_notes(measured_turns(calm)) == []


def test_a_run_that_did_not_count_what_was_found_again_says_nothing_of_it(tmp_path: Path) -> None:
    """Older runs have preemptions without that count; no number is made up for them."""
    runtime = ScriptedRuntime(pressures=[Pressure(word="item", preemptions=1)])
    folder = make_folder(tmp_path)
    make_session(runtime, folder, [make_talk("q", "item")], arms=("no-cache",)).run()

    (note,) = pressure_notes(measured_turns(folder))

    assert note.endswith(": no-cache 1 preemption")


def test_a_precision_that_decides_little_is_noted(tmp_path: Path) -> None:
    """Leads of one, held against thresholds of two and of nothing."""
    folder = make_folder(tmp_path)
    make_session(ScriptedRuntime(), folder, make_talks(2)).run()
    turns = measured_turns(folder)

    def notes(target_swing: float) -> list[str]:
        tau = Tau(target=0.0, draft=0.0, target_swing=target_swing, draft_swing=0.0)
        return precision_notes(make_rows(turns, [], tau), "bfloat16")

    (note,) = notes(2.0)
    assert note.startswith(
        "in bfloat16 up to 100.0% of the target's choices and 0.0% of the head's"
    )
    assert notes(0.5) == []
