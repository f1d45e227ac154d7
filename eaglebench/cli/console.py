"""Where things are printed and whether they may be coloured."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

MIN_WIDTH = 40
MAX_WIDTH = 10_000
PLAIN_WIDTH = 140
"""Columns of a table that is piped into a file."""


def notice(line: str) -> None:
    """One line about what is going on, on standard error."""
    click.echo(line, err=True)


def stdout_console() -> "Console":
    """For tables: no colours and no control codes unless standard output is a terminal."""
    return _console(is_stderr=False)


def stderr_console() -> "Console":
    """For progress."""
    return _console(is_stderr=True)


def is_live(choice: str) -> bool:
    """Whether progress moves on the screen (`rich`) rather than in lines.

    Args:
        choice: `auto`, `rich`, `plain` or `none`.
    """
    if choice != "auto":
        return choice == "rich"
    is_dumb = os.environ.get("TERM") == "dumb" or bool(os.environ.get("CI"))
    return sys.stderr.isatty() and not is_dumb


def _console(*, is_stderr: bool) -> "Console":
    stream = sys.stderr if is_stderr else sys.stdout
    if stream.isatty():
        return _literal_console(stderr=is_stderr, width=_narrowest() if _columns() else None)
    return _literal_console(
        stderr=is_stderr,
        width=_narrowest() if _columns() else PLAIN_WIDTH,
        no_color=True,
        force_terminal=False,
        highlight=False,
    )


def _literal_console(**attributes: Any) -> "Console":
    """A console that shows texts as they are: brackets and colons of a name are no markup."""
    from rich.console import Console

    return Console(markup=False, emoji=False, **attributes)


def _columns() -> int:
    text = os.environ.get("COLUMNS", "")
    return min(int(text), MAX_WIDTH) if text.isdecimal() and len(text) < 9 else 0


def _narrowest() -> int:
    return max(MIN_WIDTH, _columns())
