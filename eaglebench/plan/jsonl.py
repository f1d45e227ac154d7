"""JSON Lines that people wrote: blank lines, a BOM and CRLF are fine, a broken line is not."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eaglebench.errors import InputFileError
from eaglebench.files import escaped, kind_of, parse_json, read_text

_HINT = "expected one JSON object a line"


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number (from 1) and object of every line that isn't blank.

    Raises:
        InputFileError: the file can't be read or a line is not a JSON object.
    """
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        if not text.strip():
            continue
        record = parse_json(path, text, line=line, hint=_HINT)
        if not isinstance(record, dict):
            raise InputFileError(
                path, f"expected a JSON object, found {kind_of(record)}", line=line, hint=_HINT
            )
        if "\\u" in text and escaped(rest := json.dumps(record, ensure_ascii=False)) != rest:
            raise InputFileError(
                path, "holds half of a surrogate pair, which is no character", line=line
            )
        yield line, record
