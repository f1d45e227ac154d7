"""Files beside a verdict, for CI: one that can't be written is a warning and changes no status."""

from collections.abc import Callable
from pathlib import Path

from eaglebench.cli.console import notice
from eaglebench.errors import StorageError
from eaglebench.files import append_text, make_folder, write_text


def write_beside(path: Path, text: str, option: str) -> None:
    """Write a file that `option` asks for; folders that are missing are made."""

    def write() -> None:
        make_folder(path.parent)
        write_text(path, text)

    _try(write, option)


def append_beside(path: Path, text: str, option: str) -> None:
    """Write at the end of a file that somebody else has made; a missing folder is theirs to make."""
    _try(lambda: append_text(path, text), option)


def _try(write: Callable[[], None], option: str) -> None:
    try:
        write()
    except StorageError as error:
        notice(f"warning: {option}: {error.message}; the verdict stands")
