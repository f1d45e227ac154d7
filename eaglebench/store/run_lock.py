"""One writer a run folder.

The lock is the system's own on `run.lock`, so that it ends with the process that holds it, however
that ends; `writer.json` beside it says who that is, for people. Readers need neither.
"""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from eaglebench.errors import StorageError, UsageError

LOCK = "run.lock"
WRITER = "writer.json"
PATIENCE_S = 0.5
"""A reader that looks whether somebody writes holds the lock for a moment."""


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Be the only process that writes this run folder.

    Raises:
        UsageError: another process is writing it; named.
        StorageError: the folder can't be locked.
    """
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=PATIENCE_S)
    except Timeout as error:
        raise UsageError(
            f"run {folder.name} is being written by {_writer(folder)}",
            hint="wait until it is done, or end that process; what it finished is kept",
        ) from error
    except (OSError, NotImplementedError) as error:
        raise StorageError(
            f"{folder / LOCK} can't be locked: {error}", hint="choose another --output-dir"
        ) from error
    try:
        _sign(folder)
        yield
    finally:
        (folder / WRITER).unlink(missing_ok=True)
        lock.release()


def is_written(folder: Path) -> bool:
    """Whether a process is writing this run folder right now."""
    path = folder / LOCK
    if not path.is_file():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    except (OSError, NotImplementedError):  # a folder that can't be written has no writer
        return False
    lock.release()
    return False


def _sign(folder: Path) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    writer = {"pid": os.getpid(), "host": platform.node(), "since": now}
    try:
        (folder / WRITER).write_text(json.dumps(writer) + "\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{folder / WRITER} can't be written: {error}") from error


def _writer(folder: Path) -> str:
    """`process 1234 on host since 2026-11-30T02:13:00+00:00`, as far as it is known."""
    try:
        writer = json.loads((folder / WRITER).read_text(encoding="utf-8"))
        return f"process {writer['pid']} on {writer['host']} since {writer['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
