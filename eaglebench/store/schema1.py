"""Reads the records of schema 1 as those of schema 2."""

from collections.abc import Sequence
from typing import Any

from eaglebench.records.counters import Counters

SCHEMA = 1


def names(stored: Sequence[str]) -> list[str]:
    """Fields of a stored line or table by their names of today."""
    is_old = "round" in stored and "pass_index" not in stored
    return ["pass_index" if is_old and name == "round" else name for name in stored]


def renamed(values: Any) -> Any:
    """A stored line with the names of today."""
    if not isinstance(values, dict) or "round" not in values:
        return values
    return dict(zip(names(list(values)), values.values(), strict=True))


def nested(values: Any) -> Any:
    """A turn with its counters in a place of their own; what it lacks was not measured."""
    if not isinstance(values, dict) or "counters" in values:
        return values
    mine = Counters.names()
    return {
        **{name: value for name, value in values.items() if name not in mine or name == "turns"},
        "counters": {name: values[name] for name in mine if name in values and name != "turns"},
    }


def doubt_kinds(kinds: Any) -> Any:
    """Doubts that a baseline allowed, by the names of today."""
    if isinstance(kinds, list):
        return ["passes" if kind == "rounds" else kind for kind in kinds]
    return kinds
