"""What counts as finished, and what a run can't be gone on with."""

import json
from pathlib import Path
from typing import Any

import pytest

from eaglebench.bench.resume import obstacles
from eaglebench.errors import UsageError
from eaglebench.store.run_folder import RunFolder
from tests.fakes import Plant, ScriptedRuntime
from tests.sessions import make_folder, make_session, make_talk, make_talks

MANIFEST = {
    "code_sha256": "a" * 64,
    "suite": {"sha256": "b" * 64, "questions_sha256": "c" * 64},
}
ENVIRONMENT = {"exact": {"torch": "2.13.0", "draft_sha256": "d" * 64}, "timing": {"cpu": "one"}}


def run_toy(root: Path) -> RunFolder:
    """A finished run of two-turn chats."""
    folder = make_folder(root)
    make_session(ScriptedRuntime(), folder, make_talks()).run()
    return folder


def cut_blocks(folder: RunFolder, count: int) -> None:
    """Only so many blocks had ended."""
    path = folder.path / "blocks.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:count]))


def drop_line(path: Path, number: int) -> dict[str, Any]:
    """Take one line out of a file."""
    lines = path.read_text().splitlines(keepends=True)
    dropped: dict[str, Any] = json.loads(lines.pop(number))
    path.write_text("".join(lines))
    return dropped


@pytest.mark.parametrize("number", [0, 5, 40])
def test_a_turn_whose_steps_are_missing_runs_again(tmp_path: Path, number: int) -> None:
    """Its block was finished; without all its verify steps it is not whole."""
    folder = run_toy(tmp_path)
    before = folder.steps()
    dropped = drop_line(folder.path / "steps.jsonl", number)
    assert folder.steps() != before

    make_session(ScriptedRuntime(), folder, make_talks()).run()

    assert dropped["step"] >= 0
    assert folder.steps() == before


@pytest.mark.parametrize("number", [0, 3, 9])
def test_a_block_whose_turn_is_missing_runs_again(tmp_path: Path, number: int) -> None:
    """Also one that failed and delivered nothing."""
    whole = {turn.key for turn in run_toy(tmp_path / "whole").turns()}
    folder = run_toy(tmp_path / "cut")
    drop_line(folder.path / "requests.jsonl", number)

    make_session(ScriptedRuntime(), folder, make_talks()).run()

    assert {turn.key for turn in folder.turns()} == whole


def test_other_questions_under_the_same_ids_are_refused(tmp_path: Path) -> None:
    """Before anything is computed; the ones that differ are named."""
    folder = run_toy(tmp_path)
    cut_blocks(folder, 3)
    talks = make_talks()
    changed = [
        make_talk("q1", "Something else.", "And then?") if n == 1 else talks[n] for n in range(4)
    ]
    runtime = ScriptedRuntime()

    with pytest.raises(UsageError, match=r"1 question asks something else .*: q1"):
        make_session(runtime, folder, changed).run()
    assert runtime.backends == []


def test_finished_blocks_are_gone_through_again_and_not_recorded_twice(tmp_path: Path) -> None:
    """Those of arms that keep something; the lines on disk stay as they were."""
    folder = run_toy(tmp_path)
    cut_blocks(folder, 5)  # three blocks of one arm, two of the other
    kept = (folder.path / "blocks.jsonl").read_text()
    runtime = ScriptedRuntime()

    make_session(runtime, folder, make_talks(), warmup=0).run()

    served = {backend.knobs.arm: len(backend.served) for backend in runtime.backends}
    assert served["radix"] == 2 * len(make_talks())
    assert served["no-cache"] < served["radix"]
    assert (folder.path / "blocks.jsonl").read_text().startswith(kept)
    assert len(folder.blocks()) == 2 * len(make_talks())


def test_what_does_not_come_out_as_before_ends_the_run(tmp_path: Path) -> None:
    """Another engine behind the same digests is noticed by what it delivers."""
    folder = run_toy(tmp_path)
    cut_blocks(folder, 5)
    other = ScriptedRuntime({"radix": [Plant(word="item 0", side="target")]})

    with pytest.raises(UsageError, match=r"question q0 .* did not come out as before"):
        make_session(other, folder, make_talks()).run()


def test_nothing_differs_where_everything_is_the_same() -> None:
    """Times may differ: only what decides a count stands in the way."""
    elsewhere = {**ENVIRONMENT, "timing": {"cpu": "another"}}

    assert obstacles(MANIFEST, ENVIRONMENT, MANIFEST, elsewhere) == []


@pytest.mark.parametrize(
    ("manifest", "exact", "named"),
    [
        ({"code_sha256": "f" * 64}, {}, "eaglebench's code"),
        ({"code_sha256": None}, {}, "eaglebench's code: aaaaaaaaaaaa... when it began, not rec"),
        ({"suite": {"sha256": "f" * 64, "questions_sha256": "c" * 64}}, {}, "suite"),
        ({"suite": {"sha256": "b" * 64, "questions_sha256": "f" * 64}}, {}, "file of questions"),
        ({}, {"torch": "2.14.0"}, "torch: 2.13.0 when it began, 2.14.0 now"),
        ({}, {"draft_sha256": "f" * 64}, "draft_sha256: dddddddddddd..."),
        ({}, {"blas": "mkl"}, "blas: not recorded when it began, mkl now"),
    ],
)
def test_whatever_decides_a_count_stands_in_the_way_by_name(
    manifest: dict[str, Any], exact: dict[str, Any], named: str
) -> None:
    """Code, suite, questions, models, libraries."""
    here = {**ENVIRONMENT, "exact": {**ENVIRONMENT["exact"], **exact}}

    (reason,) = obstacles(MANIFEST, ENVIRONMENT, {**MANIFEST, **manifest}, here)
    assert reason.startswith(named)
