"""The boundary to other people's code that reads files and configs.

`transformers`, `tokenizers`, jinja and the code that a checkpoint brings along validate in many
places and late: a wrong field comes back as whatever stumbles over it first, `tokenizers` even
raises bare exceptions. Around such calls, and only around them, everything is caught and told again
as a user's mistake, with the reason.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from eaglebench.errors import EaglebenchError, UsageError

_MOST_CHARACTERS = 300
_SPOKEN = frozenset({"TemplateError"})
"""Raised on purpose by those who wrote a template, with words for its user."""


@contextmanager
def foreign_code(tell: Callable[[str], UsageError]) -> Iterator[None]:
    """Run other people's code.

    Args:
        tell: makes the error from the reason.

    Raises:
        UsageError: it failed; an error of our own passes through.
    """
    try:
        yield
    except EaglebenchError:
        raise
    except Exception as error:
        raise tell(reason_of(error)) from error


def reason_of(error: Exception) -> str:
    """Kind and words of an error, on one line of a bearable length."""
    words = " ".join(str(error).split())
    if len(words) > _MOST_CHARACTERS:
        words = f"{words[:_MOST_CHARACTERS]} ..."
    kind = type(error).__name__
    if not words:
        return kind
    return words if kind in _SPOKEN else f"{kind}: {words}"
