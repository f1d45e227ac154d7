"""Every error that eaglebench raises on purpose.

    EaglebenchError
    ├── UsageError          the user asked for something that can't be done    exit 2
    │   ├── InputFileError  a file of the user's is wrong (carries file, line)
    │   ├── AssetError      an asset can't be had or does not match its digest
    │   └── CheckpointError a checkpoint can't be placed in the model
    ├── NothingMeasuredError  there is nothing to compare or to show           exit 5
    │   ├── BrokenModelError  a model gave NaN or infinite numbers
    │   └── EngineError       an engine outside died, hung or contradicted itself
    ├── StorageError        the results could not be written                   exit 1
    └── InvariantError      a broken promise inside the engine (a bug)         exit 1

A message says what was wrong and what was expected; `hint` says what to try.
"""

from pathlib import Path


class EaglebenchError(Exception):
    """Base class; `hint` is one line that says what to try."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(EaglebenchError):
    """The user's request can't be carried out as it stands."""


class InputFileError(UsageError):
    """A file that the user gave is wrong; the message starts with `file:line`."""

    def __init__(
        self, path: Path | str, message: str, *, line: int | None = None, hint: str | None = None
    ) -> None:
        where = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {message}", hint=hint)
        self.path = path
        self.line = line


class AssetError(UsageError):
    """An asset is missing, can't be fetched, or does not match its digest."""


class CheckpointError(UsageError):
    """A checkpoint has tensors that can't be placed, or lacks tensors that are needed."""


class NothingMeasuredError(EaglebenchError):
    """A run or a comparison that holds no measurement; never a pass."""


class BrokenModelError(NothingMeasuredError):
    """A turn failed while it ran; what such a model gives is no measurement."""


class EngineError(NothingMeasuredError):
    """An engine outside this process died, hung or contradicted itself; finished blocks are kept."""


class StorageError(EaglebenchError):
    """Results could not be written; what was written before is intact."""


class InvariantError(EaglebenchError):
    """The engine's bookkeeping contradicts itself: always a bug, never a user's mistake."""
