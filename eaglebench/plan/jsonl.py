"""JSON Lines that people wrote: blank lines, a BOM and CRLF are fine, a broken line is not."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eaglebench.errors import InputFileError


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number (from 1) and object of every line that isn't blank.

    Raises:
        InputFileError: the file can't be read or a line is not a JSON object.
    """
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputFileError(
                path,
                f"broken JSON at column {error.colno}: {error.msg}",
                line=line,
                hint="expected one JSON object a line",
            ) from error
        if not isinstance(record, dict):
            raise InputFileError(
                path, f"expected a JSON object, found {type(record).__name__}", line=line
            )
        yield line, record


def read_text(path: Path) -> str:
    """The whole file as text, without a BOM.

    Raises:
        InputFileError: the file is missing, a folder, unreadable or not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputFileError(path, "no such file") from error
    except IsADirectoryError as error:
        raise InputFileError(path, "is a folder; expected a file") from error
    except UnicodeDecodeError as error:
        raise InputFileError(path, f"not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise InputFileError(path, error.strerror or str(error)) from error
