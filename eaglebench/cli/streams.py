"""Standard output and standard error that never stop a command.

What an encoding can't show is escaped. When the reader has gone, or the disk behind a redirection is
full, the rest is dropped and the error is kept: the command ends with the status it has earned.
"""

import errno
import io
import os
import sys
from typing import Any, TextIO

from eaglebench.files import ESCAPED, why


class LastingFile(io.RawIOBase):
    """A raw stream whose first error ends what is written, not who writes."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self._raw = raw
        self.error: OSError | None = None

    @property
    def name(self) -> Any:
        """Name of the stream below."""
        return self._raw.name

    def writable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """Number of the file below."""
        return int(self._raw.fileno())

    def isatty(self) -> bool:
        """Whether somebody looks at it."""
        return bool(self._raw.isatty())

    def write(self, data: Any) -> int | None:
        """Pass on what can be passed on; after an error everything is dropped."""
        if self.error is None:
            try:
                return int(self._raw.write(data) or 0)
            except OSError as error:
                self.error = error
        return len(data)


def guard_streams() -> None:
    """Make both streams of this process last; done once, before a command runs."""
    sys.stdout = _lasting(sys.stdout)
    sys.stderr = _lasting(sys.stderr)


def unshown() -> str | None:
    """Why not all of standard output could be written; None where it was, or nobody reads it."""
    try:
        sys.stdout.flush()
    except OSError as error:  # a stream that is not ours
        return _reason(error)
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return _reason(raw.error if isinstance(raw, LastingFile) else None)


def _reason(error: OSError | None) -> str | None:
    return None if error is None or error.errno == errno.EPIPE else why(error)


def _lasting(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed by whoever started us
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  # lives as long as we do
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.reconfigure(errors=ESCAPED)
    raw = getattr(stream.buffer, "raw", stream.buffer)
    if not isinstance(raw, io.FileIO):
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(LastingFile(raw)),
        encoding=stream.encoding,
        errors=ESCAPED,
        line_buffering=stream.line_buffering or stream.write_through,
    )
