"""Turns that fail while they run: the run stops with their name, or goes on if it was asked to."""

from pathlib import Path

import pytest

from eaglebench.errors import BrokenModelError
from tests.fakes import Plant, ScriptedRuntime
from tests.sessions import make_folder, make_session, make_talk


def test_a_turn_that_fails_while_it_runs_stops_the_run_with_its_name(tmp_path: Path) -> None:
    """Its block is on disk before; nothing after it is asked."""
    runtime = ScriptedRuntime(plants={"radix": [Plant(word="bad", side="failed")]})
    folder = make_folder(tmp_path)
    talks = [make_talk("fine", "hi"), make_talk("broken", "a bad one"), make_talk("later", "ho")]

    with pytest.raises(
        BrokenModelError, match=r"question broken, turn 1, radix: the target gave NaN"
    ):
        make_session(runtime, folder, talks, arms=("radix",)).run()
    reasons = {turn.question_id: turn.finish_reason for turn in folder.turns()}
    assert reasons == {"fine": "length", "broken": "failed"}


def test_a_run_that_may_go_on_records_the_failed_turn(tmp_path: Path) -> None:
    """With --continue-on-error everybody else is asked; what the turn said before is kept."""
    runtime = ScriptedRuntime(plants={"radix": [Plant(word="bad", side="failed", output_index=4)]})
    folder = make_folder(tmp_path)
    talks = [make_talk("broken", "a bad one"), make_talk("later", "ho")]

    make_session(runtime, folder, talks, arms=("radix",), continue_on_error=True).run()

    found = {
        turn.question_id: (turn.finish_reason, turn.counters.output_tokens)
        for turn in folder.turns()
    }
    assert found == {"broken": ("failed", 4), "later": ("length", 24)}
