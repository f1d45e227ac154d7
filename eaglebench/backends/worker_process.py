"""An engine in a process of its own, under a python of its own: JSON lines over its pipes.

The worker is a script beside this file that imports the engine and the standard library alone. Each
line is one question, each answer one line; what the engine prints goes to a log file. The process
leads a group of its own, so that nothing of it outlives `close`, and it ends by itself when its
standard input does.
"""

import json
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from eaglebench.errors import EngineError, UsageError

START_S = 600.0
"""Longest an engine may take to load."""
ANSWER_S = 600.0
"""Longest it may take from one finished request to the next."""
_LAST_LINES = 12
_GRACE_S = 5.0


class Worker:
    """One process; every question has one answer."""

    def __init__(
        self, python: str, script: Path, *, environment: Mapping[str, str], name: str
    ) -> None:
        """Start it; what the user's environment says goes before `environment`.

        Raises:
            UsageError: there is no such python.
        """
        self.name = name
        self._log = tempfile.NamedTemporaryFile(prefix="eaglebench-", suffix=".log")  # noqa: SIM115  # as long as the process
        try:
            self._process = subprocess.Popen(  # noqa: S603  # the python that the user named
                [python, "-u", str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env={**environment, **os.environ},
                start_new_session=True,
            )
        except OSError as error:
            self._log.close()
            raise UsageError(
                f"--engine-python {python} can't be started: {error.strerror or error}",
                hint=f"name the python of the environment that {name} is installed in",
            ) from error
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._unread = b""

    @property
    def _stdout(self) -> Any:
        return self._process.stdout

    def ask(self, question: Mapping[str, Any], limit_s: float = ANSWER_S) -> dict[str, Any]:
        """Ask and wait for the answer.

        Raises:
            EngineError: it died, did not answer in time, said something else, or reports an error.
        """
        self.tell(question)
        line = self._line(limit_s)
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise EngineError(f"{self.name} answered {line[:80]!r}; expected JSON") from error
        if not isinstance(answer, dict):
            raise EngineError(f"{self.name} answered {line[:80]!r}; expected an object")
        if "error" in answer:
            raise EngineError(f"{self.name}: {answer['error']}", hint=self._last_words())
        return answer

    def tell(self, question: Mapping[str, Any]) -> None:
        """Say something that has no answer.

        Raises:
            EngineError: it is gone.
        """
        stream = self._process.stdin
        assert stream is not None
        try:
            stream.write(json.dumps(question).encode() + b"\n")
            stream.flush()
        except (OSError, ValueError) as error:
            raise self._gone() from error

    @property
    def is_alive(self) -> bool:
        """Whether it could answer."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it and whatever it started."""
        stream = self._process.stdin
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        self._kill()
        self._selector.close()
        if self._stdout is not None:
            self._stdout.close()
        self._log.close()

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _line(self, limit_s: float) -> str:
        while b"\n" not in self._unread:
            if not self._selector.select(limit_s):
                self._kill()
                raise EngineError(
                    f"{self.name} said nothing for {limit_s:.0f} s and was ended",
                    hint=self._last_words(),
                )
            read = os.read(self._stdout.fileno(), 1 << 16)
            if not read:
                raise self._gone()
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode(errors="replace")

    def _gone(self) -> EngineError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        self._kill()
        code = self._process.returncode
        how = f"status {code}" if code >= 0 else f"signal {-code}"
        return EngineError(
            f"{self.name} ended with {how} in the middle of its work", hint=self._last_words()
        )

    def _last_words(self) -> str | None:
        """The last lines that it wrote to standard error."""
        try:
            text = Path(self._log.name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        lines = [line.rstrip() for line in text.splitlines() if line.strip()]
        return "it wrote: " + " | ".join(lines[-_LAST_LINES:]) if lines else None
