"""JSON Lines that people wrote: blank lines, a BOM and CRLF are fine, a broken line is not."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eaglebench.errors import InputFileError
from eaglebench.files import escaped, kind_of, parse_json, read_text

_HINT = "expected one JSON object a line"
_BETWEEN = re.compile(r"[ \t\r\n,]*")


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number (from 1) and object of every line that isn't blank.

    Raises:
        InputFileError: the file can't be read or a line is not a JSON object.
    """
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        if not text.strip():
            continue
        record = parse_json(path, text, line=line, hint=_HINT)
        yield line, _checked(path, line, text, record)


def read_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The same of JSON Lines, or of a file that holds one JSON array of objects.

    Raises:
        InputFileError: the file can't be read, or holds something else.
    """
    text = read_text(path)
    if not text.lstrip().startswith("["):
        yield from read_jsonl(path)
        return
    parse_json(path, text, hint=_HINT)
    decoder, start = json.JSONDecoder(), _skip(text, text.index("[") + 1)
    while text[start] != "]":
        record, end = decoder.raw_decode(text, start)
        line = text.count("\n", 0, start) + 1
        yield line, _checked(path, line, text[start:end], record)
        start = _skip(text, end)


def _skip(text: str, start: int) -> int:
    """Where the next value, or the end of the array, begins."""
    found = _BETWEEN.match(text, start)
    return found.end() if found else start


def _checked(path: Path, line: int, text: str, record: Any) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise InputFileError(
            path, f"expected a JSON object, found {kind_of(record)}", line=line, hint=_HINT
        )
    if "\\u" in text and escaped(rest := json.dumps(record, ensure_ascii=False)) != rest:
        raise InputFileError(
            path, "holds half of a surrogate pair, which is no character", line=line
        )
    return record
