"""`--draft-config KEY=VALUE`: what the user says otherwise than the config of a draft head says it."""

import json
from collections.abc import Iterable
from typing import Any

from eaglebench.errors import UsageError

NAME = "--draft-config"
HELP = (
    "A field of the head's config.json that is said otherwise, repeatable: "
    "max_position_embeddings, rope_theta, rope_scaling, norm_output, sliding_window and whatever "
    "else is read from it; null takes a field out."
)


def parse_values(given: Iterable[tuple[str, str]], flag: str = NAME) -> dict[str, Any] | None:
    """Names and values; a value is JSON, or else a word as it stands. None where none is given.

    Raises:
        UsageError: a field is given twice with two values.
    """
    found: dict[str, Any] = {}
    for name, text in given:
        value = _parsed(text)
        if name in found and found[name] != value:
            raise UsageError(f"{flag} says two things of {name}: {found[name]!r} and {value!r}")
        found[name] = value
    return found or None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(text: str) -> float:
    """NaN and Infinity are no JSON; they stay words, which no number is."""
    raise ValueError(text)
