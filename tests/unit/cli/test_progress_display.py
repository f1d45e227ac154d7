"""Progress as lines, and as a run's log."""

from pathlib import Path

import pytest

from eaglebench.bench.logged_progress import LoggedProgress
from eaglebench.cli.progress_display import PlainProgress, progress_display


def test_plain_progress_says_twenty_lines_a_stage(capsys: pytest.CaptureFixture[str]) -> None:
    """The beginning, a line every twentieth, and the end; what comes on top moves the end away."""
    shown = PlainProgress()
    shown.stage("questions", 60)
    for _ in range(59):
        shown.advance(1, "a cell")
    shown.extend(1)
    shown.advance(2, "a cell")

    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "questions: 0 of 60 done"
    assert lines[1] == "questions: 3/60  a cell"
    assert lines[-1] == "questions: 61/61  a cell"
    assert len(lines) == 21


def test_no_progress_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """With `none` nothing reaches the screen."""
    with progress_display("none") as shown:
        shown.stage("questions", 1)
        shown.advance(1, "a cell")
        shown.note("a line")

    assert capsys.readouterr().err == ""


def test_the_log_holds_everything(tmp_path: Path) -> None:
    """Every event is a line with its time, whatever is shown."""
    log = tmp_path / "log.txt"
    with progress_display("none") as shown:
        logged = LoggedProgress(shown, log)
        logged.stage("questions", 2)
        logged.advance(1, "a cell")
        logged.extend(1)
        logged.note("interrupted")

    said = [line.split(" ", 1)[1] for line in log.read_text(encoding="utf-8").splitlines()]
    assert said == [
        "questions: 0 of 2 done",
        "1 done: a cell",
        "one more pass: 1 on top",
        "interrupted",
    ]
