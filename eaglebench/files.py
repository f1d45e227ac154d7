r"""Text files: how every one of them is read and written, decided in one place.

They are UTF-8. A byte order mark in front is passed over. Half of a surrogate pair, which comes from
names and arguments that are no text, has no bytes in UTF-8: it is written as its escape (`\udcff`).
"""

import json
from contextlib import suppress
from json import JSONDecodeError
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from eaglebench.errors import InputFileError, StorageError

ENCODING = "utf-8"
ESCAPED = "backslashreplace"
"""What becomes of characters that an encoding lacks, in files and on the screen."""
_OTHER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def is_file(path: Path) -> bool:
    """Whether there is a file; a name that can't be one (too long, with a NUL) is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether there is a folder; a name that can't be one is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def user_path(name: str) -> Path:
    """A path as a person types it: `~` is the home folder, where there is such a person."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def read_text(path: Path) -> str:
    """The whole file as text, without a byte order mark.

    Raises:
        InputFileError: the file is missing, a folder, unreadable or not UTF-8.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise InputFileError(path, "no such file") from error
    except IsADirectoryError as error:
        raise InputFileError(path, "is a folder; expected a file") from error
    except (OSError, ValueError) as error:
        raise InputFileError(path, f"can't be read: {why(error)}") from error
    return decode_text(path, content)


def decode_text(path: Path | str, content: bytes) -> str:
    """The content of a file as text, without a byte order mark.

    Raises:
        InputFileError: it is not UTF-8; names the line of the first byte that is none.
    """
    other = _OTHER_MARKS.get(content[:2])
    hint = "save it as UTF-8"
    if other is not None:
        raise InputFileError(path, f"{other} text; expected UTF-8", hint=hint)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputFileError(
            path, f"not UTF-8 text (byte {error.start})", line=line, hint=hint
        ) from error


def read_json(path: Path) -> Any:
    """The value of a JSON file.

    Raises:
        InputFileError: it can't be read, or is no JSON; with its line.
    """
    return parse_json(path, read_text(path))


def read_json_object(path: Path) -> dict[str, Any]:
    """The keys and values of a JSON file.

    Raises:
        InputFileError: it can't be read, or holds something else than one object.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise InputFileError(path, f"expected a JSON object, found {kind_of(value)}")
    return value


def parse_json(
    path: Path | str,
    text: str,
    *,
    line: int | None = None,
    hint: str | None = None,
    has_constants: bool = True,
) -> Any:
    """The value of a JSON text.

    Args:
        path: where it comes from.
        text: the JSON.
        line: of the file, where the text is one line of it.
        hint: what to try where it is broken.
        has_constants: whether NaN and infinities, which only some parsers know, are numbers.

    Raises:
        InputFileError: it is no JSON.
    """
    try:
        return json.loads(text, parse_constant=None if has_constants else _refuse_constant)
    except JSONDecodeError as error:
        message = f"broken JSON at column {error.colno}: {error.msg}"
        raise InputFileError(path, message, line=line or error.lineno, hint=hint) from error
    except RecursionError as error:
        raise InputFileError(path, "nested too deeply", line=line, hint=hint) from error
    except ValueError as error:
        raise InputFileError(path, f"broken JSON: {error}", line=line, hint=hint) from error


def escaped(text: str) -> str:
    """The text with halves of surrogate pairs as their escapes: what a file would hold."""
    return text.encode(ENCODING, ESCAPED).decode(ENCODING)


def kind_of(value: object) -> str:
    """What a JSON value is, in words for people."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    if value is None:
        return "null"
    return names.get(type(value), "a number")


def write_text(path: Path, text: str) -> None:
    """Write a file so that readers see the old one or the new one, never half of one.

    Two processes may write the same one (an index over runs): the later one holds.

    Raises:
        StorageError: the disk refuses; the old file is intact and nothing is left behind.
    """
    try:
        with TemporaryDirectory(dir=path.parent, prefix=f"{path.name}.", suffix=".tmp") as scratch:
            partial = Path(scratch) / path.name
            partial.write_text(text, encoding=ENCODING, errors=ESCAPED, newline="\n")
            partial.replace(path)
    except (OSError, ValueError) as error:
        raise StorageError(f"{path} can't be written: {why(error)}") from error


def append_text(path: Path, text: str, *, hint: str | None = None) -> None:
    """Write at the end of a file, which is made where there is none.

    Raises:
        StorageError: the disk refuses; what was written before is intact.
    """
    try:
        with path.open("a", encoding=ENCODING, errors=ESCAPED, newline="\n") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise StorageError(f"{path} can't be written: {why(error)}", hint=hint) from error


def make_folder(path: Path, *, hint: str | None = None) -> None:
    """Make a folder and those above it; one that is there already is fine.

    Raises:
        StorageError: it can't be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise StorageError(f"{path} can't be made: {why(error)}", hint=hint) from error


def check_writable(folder: Path, *, hint: str | None = None) -> None:
    """Make a folder and try to write a file in it, before anything is computed for it.

    What was not there before is taken away again: a request that is refused leaves no trace.

    Raises:
        StorageError: it can't be made, or nothing can be written there.
    """
    missing = [each for each in (folder, *folder.parents) if not is_folder(each)]
    try:
        make_folder(folder, hint=hint)
        with TemporaryFile(dir=folder) as file:
            file.write(b"1")
    except OSError as error:
        raise StorageError(
            f"nothing can be written in {folder}: {why(error)}", hint=hint
        ) from error
    finally:
        for made in missing:
            with suppress(OSError, ValueError):
                made.rmdir()


def give_usual_rights(path: Path) -> None:
    """Let those read a file who may read any new one; some libraries keep theirs to the user.

    Raises:
        OSError: they can't be changed.
    """
    other = path.with_name(f".{path.name}.new")
    other.touch()
    mode = other.stat().st_mode
    other.unlink()
    path.chmod(mode)


def why(error: OSError | ValueError) -> str:
    """The operating system's own words, without number and path."""
    return getattr(error, "strerror", None) or str(error)


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")
