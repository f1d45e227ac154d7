"""JSON Lines that survive a crash: appended as results come in, a broken tail is dropped."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from eaglebench.errors import InputFileError, StorageError
from eaglebench.files import append_text, why, write_text
from eaglebench.store.records import problem_of

Line = TypeVar("Line")
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}
Upgrade = Callable[[Mapping[str, Any]], dict[str, Any]]
"""What a stored line of any version is in the fields of today."""


def adapter(kind: type[Line]) -> TypeAdapter[Line]:
    """Reads and writes records of a kind; made once, which takes milliseconds."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def append_lines(path: Path, kind: type[Line], lines: Iterable[Line], *, but: str = "") -> None:
    """Append records without their field `but`, and flush them to the operating system.

    Raises:
        StorageError: the disk refuses; what was written before is intact.
    """
    dumped = (adapter(kind).dump_json(line, exclude={but}).decode() for line in lines)
    text = "".join(line + "\n" for line in dumped)
    if not text:
        return
    append_text(
        path,
        text,
        hint="finished questions are kept; free some space and run again with --resume",
    )


def read_lines(path: Path, kind: type[Line], upgrade: Upgrade) -> tuple[list[Line], str | None]:
    """All whole records of a file, and a notice of what was not read.

    That is a last line that was cut off, and fields that only newer versions of eaglebench know.

    Raises:
        InputFileError: any other line is broken, or contradicts itself; with its number.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return [], None
    except OSError as error:
        raise InputFileError(path, f"can't be read: {why(error)}") from error
    pieces = raw.split(b"\n")
    records: list[Line] = []
    unknown: dict[str, None] = {}
    notices = []
    for number, piece in enumerate(pieces, start=1):
        if not piece.strip():
            continue
        try:
            values = json.loads(piece)
        except (ValueError, RecursionError) as error:
            if number == len(pieces):
                notices.append(f"{path.name}: dropped a last line that was cut off")
                break
            raise _refused(path, number, kind, f"broken JSON: {error}") from error
        records.append(_record(path, number, kind, values, upgrade, unknown))
    if unknown:
        notices.append(unknown_fields(path, list(unknown)))
    return records, "; ".join(notices) or None


def unknown_fields(path: Path, names: Sequence[str]) -> str:
    """The notice that fields of a file are not shown."""
    return f"{path.name}: fields of another version are not shown: {', '.join(names)}"


def _record(
    path: Path,
    number: int,
    kind: type[Line],
    values: Any,
    upgrade: Upgrade,
    unknown: dict[str, None],
) -> Line:
    """A line as a record; fields that it does not have are left out and added to `unknown`."""
    if not isinstance(values, dict):
        raise _refused(path, number, kind, "it is no object")
    values = upgrade(values)
    try:
        record = _without_unknown(kind, values, unknown)
    except ValidationError as error:
        finding = error.errors()[0]
        where = ".".join(str(part) for part in finding["loc"])
        reason = f"{where}: {finding['msg']}" if where else finding["msg"]
        raise _refused(path, number, kind, reason) from error
    if problem := problem_of(record):
        raise _refused(path, number, kind, problem)
    return record


def _without_unknown(kind: type[Line], values: Any, unknown: dict[str, None]) -> Line:
    try:
        return adapter(kind).validate_python(values)
    except ValidationError as error:
        extra = ("extra_forbidden", "unexpected_keyword_argument")
        more = [f["loc"] for f in error.errors() if f["type"] in extra]
        if len(more) < error.error_count():
            raise
    for *places, name in more:
        unknown[".".join(map(str, (*places, name)))] = None
        place = values
        for each in places:
            place = place[each]
        del place[name]
    return adapter(kind).validate_python(values)


def _refused(path: Path, number: int, kind: type[Line], reason: str) -> InputFileError:
    return InputFileError(
        path,
        f"expected a {kind.__name__}; {reason}",
        line=number,
        hint="the file was changed by hand, or written by another version of eaglebench",
    )


def drop_broken_tail(path: Path) -> None:
    """Cut a file after its last newline, so that appending goes on with a whole line."""
    if not path.exists():
        return
    try:
        raw = path.read_bytes()
        end = raw.rfind(b"\n") + 1
        if end < len(raw):
            with path.open("r+b") as file:
                file.truncate(end)
    except OSError as error:
        raise StorageError(f"{path} can't be mended: {why(error)}") from error


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file so that readers see the old one or the new one, never half of one.

    Raises:
        StorageError: the disk refuses; the old file is intact and nothing is left behind.
    """
    write_text(path, json.dumps(value, indent=1, sort_keys=True) + "\n")
