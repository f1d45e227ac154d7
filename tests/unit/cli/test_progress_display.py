"""Progress as lines, and as a run's log."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import MofNCompleteColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from eaglebench.bench.logged_progress import LoggedProgress
from eaglebench.cli.progress_display import LiveProgress, PlainProgress, bars_with, progress_display


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


def test_eighty_columns_keep_the_time_left() -> None:
    """However long the cell's name is: it stands last and is cut, the numbers are not."""
    console = Console(file=StringIO(), width=80, force_terminal=True)
    columns = (MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with bars_with(console, *columns) as bars:
        shown = LiveProgress(bars)
        shown.stage("questions", 640)
        shown.advance(
            1, "page16-chunk2048-topk8-steps6-draft60-covered64  no-cache  1234.5 token/s"
        )
        drawn = bars.make_tasks_table(bars.tasks)
    with console.capture() as capture:
        console.print(drawn)

    lines = capture.get().splitlines()
    assert len(lines) == 1
    line = Text.from_ansi(lines[0]).plain
    assert "1/640" in line
    assert "-:--:--" in line
    assert line.index("-:--:--") < line.index("page16-")
    assert len(line) <= 80
