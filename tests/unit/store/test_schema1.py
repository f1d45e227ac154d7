"""A run and a baseline that an earlier version wrote, read as those of today."""

import json
from pathlib import Path
from shutil import copytree

import pytest

from eaglebench.records.counters import Counters
from eaglebench.records.knobs import EngineKnobs
from eaglebench.store.baseline import read_baseline, write_baseline
from eaglebench.store.decode import measured_run
from eaglebench.store.run_folder import RunFolder
from tests.snapshots import QUIET, make_arm, make_snapshot
from tests.stored_runs import invoke

STORED = Path(__file__).with_name("schema1")
"""One question of `tiny` in two cells (`--preallocate-tokens 16,32`), two arms and two passes."""


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A copy of the stored run."""
    copytree(STORED, tmp_path / "runs" / "old")
    return RunFolder(tmp_path / "runs" / "old")


def test_turns_have_their_counts_knobs_and_times(folder: RunFolder) -> None:
    """Every line says the same in its own words."""
    lines = [json.loads(line) for line in (STORED / "requests.jsonl").read_text().splitlines()]
    turns = folder.turns()

    assert len(turns) == len(lines) == 16
    for turn, line in zip(turns, lines, strict=True):
        counts = {name: line[name] for name in Counters.names() if name != "turns"}
        assert turn.counters == Counters(**counts)
        assert turn.key == tuple(
            line[name] for name in ("cell_id", "arm", "round", "question_id", "turn")
        )
        assert turn.times.total_s == line["t_total_s"]
        assert (turn.is_measured, turn.window) == (line["measured"], line["sliding_window"])
        assert turn.request_id == f"{turn.question_id}/{turn.turn}"
        assert turn.knobs.page_size == line["page_size"]


def test_knobs_that_a_turn_lacks_are_those_of_its_run(folder: RunFolder) -> None:
    """The pool stands in the configuration, what preallocation aims at in the cell's name."""
    config = folder.manifest()["config"]
    for turn in folder.turns():
        assert turn.knobs == EngineKnobs(
            arm=turn.arm,
            sliding_window=0,
            preallocation="covered",
            preallocate_tokens=int(turn.cell_id[-2:]),
            max_total_tokens=config["max_total_tokens"],
        )


def test_steps_and_blocks_belong_to_their_turns(folder: RunFolder) -> None:
    """The table of steps called a pass a round, and a block had its times beside it."""
    run = measured_run(folder)

    assert {turn.pass_index for turn in run.turns} == {0, 1}
    for turn in run.turns:
        assert tuple(step.accepted for step in turn.steps) == turn.accepted_per_step
    for block in run.blocks:
        assert 0 < block.times.prefill_s + block.times.decode_s < block.wall_s
        mine = [t for t in run.turns if t.key[:3] == (block.cell_id, block.arm, block.pass_index)]
        assert sum(turn.counters.output_tokens for turn in mine) == block.output_tokens
    assert folder.notices() == []


def test_it_is_shown(folder: RunFolder) -> None:
    """With the length that the version of then printed."""
    status, out, err = invoke("show", str(folder.path), env={"COLUMNS": "140"})

    assert status == 0, err
    assert out.count("Acceptance length: 2.50") == 2
    assert invoke("show", str(folder.path), "--paste")[1].count("Acceptance length: 2.50") == 4


def test_a_baseline_of_schema_1_is_read(tmp_path: Path) -> None:
    """Its noise counted pairs, and a doubt was called rounds."""
    snapshot = make_snapshot(make_arm(noise=QUIET))
    path = write_baseline(tmp_path, "old", snapshot, "why")
    today = read_baseline(path)
    text = path.read_text().replace('"schema_version":2', '"schema_version":1')
    text = text.replace('"passes":', '"pairs":').replace('"pass_sd_ppm":', '"pair_sd_ppm":')
    assert '"pairs":16' in text
    path.write_text(text)

    assert read_baseline(path) == today
