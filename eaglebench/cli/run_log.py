"""`log.txt` of a run folder: what happened when, for people."""

from datetime import UTC, datetime
from pathlib import Path

from eaglebench.bench.progress import Progress
from eaglebench.files import append_text


class LoggedProgress:
    """Progress that another one shows, written down as well."""

    def __init__(self, shown: Progress, path: Path) -> None:
        self._shown = shown
        self._path = path

    def start(self, num_questions: int) -> None:
        """The run begins."""
        self._write(f"{num_questions} questions to run, arms and cells counted")
        self._shown.start(num_questions)

    def extend(self, num_questions: int) -> None:
        """One more round is needed."""
        self._write(f"one more round: {num_questions} questions")
        self._shown.extend(num_questions)

    def advance(self, cell_id: str, arm: str, num_questions: int, tokens_per_s: float) -> None:
        """Questions of one arm are finished."""
        self._write(f"{cell_id} {arm}: {num_questions} done at {tokens_per_s:.2f} token/s")
        self._shown.advance(cell_id, arm, num_questions, tokens_per_s)

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
