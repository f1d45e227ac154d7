"""Progress that is kept in a run's `log.txt` beside being shown."""

from datetime import UTC, datetime
from pathlib import Path

from eaglebench.files import append_text
from eaglebench.progress import Progress


class LoggedProgress:
    """Progress that another one shows, written into a run's `log.txt` as well."""

    def __init__(self, shown: Progress, path: Path) -> None:
        self._shown = shown
        self._path = path

    def stage(self, name: str, total: int, done: int = 0) -> None:
        """Something begins."""
        self._write(f"{name}: {done} of {total} done")
        self._shown.stage(name, total, done)

    def extend(self, units: int) -> None:
        """There is more to do."""
        self._write(f"one more pass: {units} on top")
        self._shown.extend(units)

    def advance(self, units: int, state: str) -> None:
        """Units are finished."""
        self._write(f"{units} done: {state}")
        self._shown.advance(units, state)

    def note(self, line: str) -> None:
        """Something worth a line."""
        self._write(line)
        self._shown.note(line)

    def _write(self, line: str) -> None:
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        append_text(
            self._path,
            f"{stamp} {line}\n",
            hint="finished questions are kept; free some space and run again with --resume",
        )
