"""Counting verify steps whose drafts differ between two arms."""

from dataclasses import replace
from pathlib import Path

import pytest

from eaglebench.records.measured import MeasuredTurn
from eaglebench.stats.prefix import OtherDrafts, count_other_drafts
from eaglebench.store.decode import measured_turns
from tests.fakes import ScriptedRuntime
from tests.sessions import make_folder, make_session, make_talk


@pytest.fixture
def turn(tmp_path: Path) -> MeasuredTurn:
    """One turn of the toy."""
    folder = make_folder(tmp_path)
    talks = [make_talk("q", "Say something.")]
    make_session(ScriptedRuntime(), folder, talks, arms=["radix"]).run()
    return measured_turns(folder)[0]


def test_equal_turns_have_no_other_drafts(turn: MeasuredTurn) -> None:
    """Every step is common."""
    found = count_other_drafts([turn], [turn])

    assert found == OtherDrafts(0, len(turn.steps))
    assert found.num_common > 0


def test_a_rejected_draft_counts_too(turn: MeasuredTurn) -> None:
    """Another last draft is seen although tokens and accepted counts stay the same."""
    first, *rest = turn.steps
    changed = replace(first, drafted_ids=(*first.drafted_ids[:-1], 1))

    found = count_other_drafts([replace(turn, steps=(changed, *rest))], [turn])

    assert found == OtherDrafts(1, len(turn.steps))


def test_steps_behind_other_tokens_are_not_compared(turn: MeasuredTurn) -> None:
    """Where the answers have parted, drafts may differ for a reason."""
    parted = replace(turn, output_token_ids=(1, *turn.output_token_ids[1:]))

    assert count_other_drafts([parted], [turn]) == OtherDrafts(0, 0)
    assert count_other_drafts([replace(turn, prompt_token_ids=(1,))], [turn]) == OtherDrafts(0, 0)
