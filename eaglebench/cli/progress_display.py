"""Progress on standard error: a live bar, a line now and then, or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eaglebench.assets.progress import Listener
from eaglebench.cli.console import is_live, notice, stderr_console
from eaglebench.progress import Progress, SilentProgress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn, TaskID

BAR_WIDTH = 20
_LINES_A_STAGE = 20
"""Plain progress writes about so many lines, so that a log stays readable."""


@contextmanager
def progress_display(choice: str, *, leaves_bars: bool = False) -> Iterator[Progress]:
    """Progress shown the way the user asked for: `auto`, `rich`, `plain` or `none`.

    Args:
        choice: which.
        leaves_bars: whether bars stay on the screen when all is done.
    """
    if choice == "none":
        yield SilentProgress()
    elif is_live(choice):
        from rich.progress import MofNCompleteColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with bars_with(stderr_console(), *columns, is_transient=not leaves_bars) as bars:
            yield LiveProgress(bars)
    else:
        yield PlainProgress()


@contextmanager
def download_display(console: "Console | None" = None) -> Iterator[Listener]:
    """A listener that shows notices and, on a terminal, a bar of bytes."""
    from rich.console import Console
    from rich.progress import DownloadColumn

    console = console or Console(stderr=True)
    with bars_with(
        console, DownloadColumn(binary_units=False), is_shown=console.is_terminal
    ) as bars:
        task = bars.add_task("", total=None, visible=False, state="")

        def show(stage: str, done: int, total: int) -> None:
            bars.update(task, description=stage, completed=done, total=total, visible=True)

        yield Listener(lambda line: console.print(line, highlight=False, markup=False), show)


def bars_with(
    console: "Console",
    *columns: "ProgressColumn",
    is_transient: bool = True,
    is_shown: bool = True,
) -> "Bars":
    """Bars with their names in front and columns behind; transient ones leave nothing.

    What goes on (the field `state`) stands last and takes the room that is left, so that it can't
    push the time left off the screen.
    """
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    name = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return Bars(
        name,
        BarColumn(bar_width=BAR_WIDTH),
        *columns,
        TextColumn("{task.fields[state]}", markup=False, table_column=rest),
        console=console,
        transient=is_transient,
        disable=not is_shown,
        expand=True,
    )


class PlainProgress:
    """A line now and then, about twenty a stage."""

    def __init__(self) -> None:
        self._name, self._total, self._done, self._shown = "", 0, 0, 0

    def stage(self, name: str, total: int, done: int = 0) -> None:
        """Say what begins."""
        self._name, self._total, self._done, self._shown = name, total, done, done
        notice(f"{name}: {done} of {total} done")

    def extend(self, units: int) -> None:
        """Set the end further away."""
        self._total += units

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


class LiveProgress:
    """A bar a stage, with the time that is left."""

    def __init__(self, bars: "Bars") -> None:
        self._bars = bars
        self._total = 0
        self._task: TaskID | None = None

    def stage(self, name: str, total: int, done: int = 0) -> None:
        """Begin a bar."""
        self._total = total
        self._task = self._bars.add_task(name, total=total, completed=done, state="")

    def extend(self, units: int) -> None:
        """Make it longer."""
        self._total += units
        if self._task is not None:
            self._bars.update(self._task, total=self._total)

    def advance(self, units: int, state: str) -> None:
        """Move it."""
        if self._task is not None:
            self._bars.update(self._task, advance=units, state=state)

    def note(self, line: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(line)
