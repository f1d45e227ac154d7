"""Verify steps that carried no draft, from a run in which some did not."""

from pathlib import Path

import pytest

from eaglebench.stats.acceptance import acceptance_by_position, pool
from eaglebench.store.decode import measured_turns
from tests.fakes import ScriptedRuntime
from tests.sessions import make_folder, make_session, make_talk
from tests.toy_pools import Pressure

SILENT = 2


def test_steps_without_a_draft_lower_no_rate_per_draft(tmp_path: Path) -> None:
    """The first two steps of each answer are silent: they deliver their bonus and are no drafts."""
    folder = make_folder(tmp_path)
    runtime = ScriptedRuntime(pressures=[Pressure(word="item", silent_steps=SILENT)])
    talks = [make_talk(f"q{n}", f"item {n}") for n in range(3)]
    make_session(runtime, folder, talks, arms=("no-cache",)).run()
    turns = measured_turns(folder)

    counts = pool(turns)

    assert [step.emitted for turn in turns for step in turn.steps[:SILENT]] == [1] * SILENT * 3
    assert (counts.num_drafts or 0) == (counts.verify_steps or 0) - SILENT * 3
    assert (counts.accepted or 0) > (counts.num_drafts or 0) / 2
    assert (counts.al_vllm or 0) == 1 + (counts.accepted or 0) / (counts.num_drafts or 0)
    positions = acceptance_by_position(turns)
    assert sum(positions) == pytest.approx((counts.accepted or 0) / (counts.num_drafts or 0))
