"""A disk that takes no more: the run says so with a status of its own, and what was finished stays."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eaglebench.store.run_folder import find_run
from tests.stored_runs import invoke, scripted, write_questions

RUN = ("run", "tiny", "-o", "out", "--progress", "none", "--max-new-tokens", "24")
ASKED = ("--question-file", "questions.jsonl")
SIZES = (1, 200, 1_000, 3_000, 6_000, 9_000, 12_000, 16_000, 24_000)
"""Bytes at which a file is full: before the first line, in the middle, and in the tables at the end."""


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """The operating system refuses every write past so many bytes of a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_loses_nothing_finished(tmp_path: Path) -> None:
    """At whatever write it happens: status 1 and a reason; with room again the run goes on."""
    statuses = []
    for size in SIZES:
        folder = tmp_path / str(size)
        folder.mkdir()
        write_questions(folder / "questions.jsonl")
        with scripted(folder):
            with files_no_larger_than(size):
                status, _, err = invoke(*RUN, *ASKED)
            statuses.append(status)
            if status == 0:
                continue
            assert status == 1, err
            assert "can't be written" in err or "nothing can be written" in err, err
            assert not list(folder.rglob("*.tmp"))
            if not list(folder.rglob("run.json")):
                continue
            kept = find_run(Path("out"), "latest").turns()
            status, _, err = invoke("run", "--resume", "latest", "-o", "out", "--progress", "none")
            assert status == 0, err
            turns = find_run(Path("out"), "latest").turns()
            assert len(turns) == 12
            assert [turn for turn in turns if turn in kept] == kept

    assert statuses[0] == 1
    assert statuses.count(1) >= 4, statuses


@pytest.mark.parametrize("command", ["report --format html", "baseline save x --reason y"])
def test_what_can_not_be_written_is_a_status_and_leaves_the_old_file(
    tmp_path: Path, command: str
) -> None:
    """Nothing is half written."""
    write_questions(tmp_path / "questions.jsonl")
    with scripted(tmp_path):
        assert invoke(*RUN, *ASKED)[0] == 0
        with files_no_larger_than(400):
            status, _, err = invoke(*command.split(), "-o", "out")

    assert status == 1
    assert "can't be written: File too large" in err
    assert not list(tmp_path.rglob("*.tmp"))
    manifest = next(tmp_path.rglob("run.json"))
    assert json.loads(manifest.read_text(encoding="utf-8"))["status"] == "done"


def test_a_side_file_on_a_full_disk_changes_no_verdict(tmp_path: Path) -> None:
    """The gate has judged before it writes."""
    write_questions(tmp_path / "questions.jsonl")
    with scripted(tmp_path):
        assert invoke(*RUN, *ASKED)[0] == 0
        assert invoke("baseline", "save", "x", "--reason", "y", "-o", "out")[0] == 0
        with files_no_larger_than(100):
            status, out, err = invoke(
                *("gate", "--baseline", "x", "-o", "out", "--junit", "junit.xml"),
                env={"GITHUB_STEP_SUMMARY": "summary.md"},
            )

    assert status == 0
    assert "PASS" in out
    assert err.count("the verdict stands") == 2
