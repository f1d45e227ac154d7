"""Progress of training on standard error: a bar a stage, a line now and then, or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eaglebench.cli.console import is_live, notice
from eaglebench.cli.live_bar import live_bar

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from eaglebench.training.recipe import TrainingListener

_LINES_A_STAGE = 40


@contextmanager
def training_display(choice: str) -> Iterator["TrainingListener"]:
    """Progress shown the way the user asked for: `auto`, `rich`, `plain` or `none`."""
    if choice == "none":
        yield SilentTraining()
    elif is_live(choice):
        with live_bar(is_transient=False) as bar:
            yield LiveTraining(bar)
    else:
        yield PlainTraining()


class SilentTraining:
    """Says nothing; implements `TrainingListener`."""

    def stage(self, name: str, total: int, done: int) -> None:
        """Drop it."""

    def advance(self, units: int, state: str) -> None:
        """Drop it."""

    def note(self, line: str) -> None:
        """Drop it."""


class PlainTraining:
    """A line now and then, about forty a stage."""

    def __init__(self) -> None:
        self._name, self._total, self._done, self._shown = "", 0, 0, 0

    def stage(self, name: str, total: int, done: int) -> None:
        """Say what begins."""
        self._name, self._total, self._done, self._shown = name, total, done, done
        notice(f"{name}: {done} of {total} done")

    def advance(self, units: int, state: str) -> None:
        """Say how far it is if enough has happened since the last line."""
        self._done += units
        is_due = self._done - self._shown >= self._total / _LINES_A_STAGE
        if is_due or self._done == self._total:
            self._shown = self._done
            notice(f"{self._name}: {self._done}/{self._total}  {state}")

    def note(self, line: str) -> None:
        """Say it."""
        notice(line)


class LiveTraining:
    """A bar a stage, with the time that is left."""

    def __init__(self, bar: "RichProgress") -> None:
        self._bar = bar
        self._name = ""
        self._task: TaskID | None = None

    def stage(self, name: str, total: int, done: int) -> None:
        """Begin a bar."""
        self._name = name
        self._task = self._bar.add_task(name, total=total, completed=done)

    def advance(self, units: int, state: str) -> None:
        """Move it."""
        if self._task is not None:
            shown = f"{self._name}: {state}"
            self._bar.update(self._task, advance=units, description=shown)

    def note(self, line: str) -> None:
        """Print a line above the bars."""
        self._bar.console.print(line)
