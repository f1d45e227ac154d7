"""What fetching an asset tells whoever waits for it."""

from collections.abc import Callable
from dataclasses import dataclass

Notice = Callable[[str], None]
"""Told in one line what is going on."""

Progress = Callable[[str, int, int], None]
"""Told the stage (`downloading`, `converting`), how much is done, and of how much, in bytes."""


def _say_nothing(_line: str) -> None:
    """Drop a notice."""


def _show_nothing(_stage: str, _done: int, _total: int) -> None:
    """Drop a progress event."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Both callbacks of one caller; silent by default."""

    notice: Notice = _say_nothing
    progress: Progress = _show_nothing
