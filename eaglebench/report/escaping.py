"""Names and sentences of a run, made safe for the place they are put in.

A question's id comes from a user's file: it may hold pipes, line ends, tags and control characters.
"""

import re
from unicodedata import category

REPLACEMENT = "\ufffd"
_MARKDOWN = str.maketrans(
    {mark: f"\\{mark}" for mark in "\\`*|[]"} | {"<": "&lt;", "&": "&amp;", "\t": " "}
)
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def one_line(text: str) -> str:
    """The text on one line; what can't be shown or encoded becomes a replacement character."""
    return " ".join(_shown(line) for line in text.splitlines())


def markdown_text(text: str) -> str:
    """The text as Markdown that shows it as it is, on one line of the source."""
    return "<br>".join(_shown(line).translate(_MARKDOWN) for line in text.splitlines())


def xml_text(text: str) -> str:
    """The text without the characters that XML 1.0 has no way to write."""
    return _NOT_IN_XML.sub(REPLACEMENT, text)


def _shown(line: str) -> str:
    return "".join(
        REPLACEMENT if category(mark) in {"Cc", "Cs"} and mark != "\t" else mark for mark in line
    )
