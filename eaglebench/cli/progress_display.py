"""Progress of a run on standard error: a live bar, a line now and then, or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eaglebench.bench.progress import Progress, SilentProgress
from eaglebench.cli.console import is_live, notice
from eaglebench.cli.live_bar import live_bar

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

_LINES_A_RUN = 20
"""Plain progress writes about so many lines, so that a log stays readable."""


@contextmanager
def progress_display(choice: str) -> Iterator[Progress]:
    """Progress shown the way the user asked for: `auto`, `rich`, `plain` or `none`."""
    if choice == "none":
        yield SilentProgress()
    elif is_live(choice):
        with live_bar(is_transient=True) as bar:
            yield LiveProgress(bar)
    else:
        yield PlainProgress()


class PlainProgress:
    """A line now and then, about twenty in all."""

    def __init__(self) -> None:
        self._total = 0
        self._done = 0
        self._shown = 0

    def start(self, num_questions: int) -> None:
        """Say how much there is to do."""
        self._total = num_questions
        notice(f"{num_questions} questions to run, arms and cells counted")

    def extend(self, num_questions: int) -> None:
        """Set the end further away."""
        self._total += num_questions

    def advance(self, cell_id: str, arm: str, num_questions: int, tokens_per_s: float) -> None:
        """Say how far it is if enough has happened since the last line."""
        self._done += num_questions
        if self._done == self._total or self._done - self._shown >= self._total / _LINES_A_RUN:
            self._shown = self._done
            notice(f"{self._done}/{self._total}  {cell_id}  {arm}  {tokens_per_s:.1f} token/s")

    def note(self, line: str) -> None:
        """Say it."""
        notice(line)


class LiveProgress:
    """A bar with the time that is left."""

    def __init__(self, bar: "RichProgress") -> None:
        self._bar = bar
        self._total = 0
        self._task: TaskID = bar.add_task("starting", total=None)

    def start(self, num_questions: int) -> None:
        """Set the bar's length."""
        self._total = num_questions
        self._bar.update(self._task, total=num_questions, description="running")

    def extend(self, num_questions: int) -> None:
        """Make the bar longer."""
        self._total += num_questions
        self._bar.update(self._task, total=self._total)

    def advance(self, cell_id: str, arm: str, num_questions: int, tokens_per_s: float) -> None:
        """Move the bar."""
        shown = f"{cell_id} {arm} {tokens_per_s:.1f} token/s"
        self._bar.update(self._task, advance=num_questions, description=shown)

    def note(self, line: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(line)
