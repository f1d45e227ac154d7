"""The bar that moves on standard error while something long is done."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eaglebench.cli.console import stderr_console

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def live_bar(*, is_transient: bool) -> Iterator["Progress"]:
    """Bars with counts, the time passed and the time left; transient ones leave nothing behind."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr_console(), transient=is_transient) as bar:
        yield bar
