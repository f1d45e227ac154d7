"""Rotary tables that change with the length of what is computed, and how far they stay one table.

    default, linear, llama3, yarn, proportional      one table for every length
    longrope                                         another one past the original context
    dynamic                                          a new one for every length past it

`transformers` chooses the table by the longest row of a forward. Rows of unlike length in one batch
would take each other's table, and cached keys would keep the one they were written with, so a
target with such a kind is computed as far as there is one table and no farther.
"""

from collections.abc import Mapping
from typing import Any

from eaglebench.errors import CheckpointError

STATIC_KINDS = frozenset({"default", "linear", "llama3", "yarn", "proportional"})
CHANGING_KINDS = frozenset({"longrope", "dynamic"})
_ORIGINAL = "original_max_position_embeddings"


def kinds_by_length(config: Any) -> tuple[tuple[str, int], ...]:
    """The kinds that change with the length, each with the positions up to which it is one table.

    Raises:
        CheckpointError: a kind is unknown, or does not say where it changes.
    """
    found: list[tuple[str, int]] = []
    for parameters in _rope_blocks(config):
        kind = parameters.get("rope_type", parameters.get("type", "default"))
        if kind in CHANGING_KINDS:
            found.append((kind, _end_of_table(config, kind, parameters)))
        elif kind not in STATIC_KINDS:
            raise CheckpointError(
                f"rope_type {kind!r} can't be computed here",
                hint=f"known: {', '.join(sorted(STATIC_KINDS | CHANGING_KINDS))}",
            )
    return tuple(sorted(set(found)))


def table_limit(config: Any) -> int | None:
    """Positions up to which every row has one table; None where that is all of them."""
    limits = [limit for _, limit in kinds_by_length(config)]
    return min(limits, default=None)


def _rope_blocks(config: Any) -> list[Mapping[str, Any]]:
    """One block of parameters, or one for each type of layer."""
    given = getattr(config, "rope_parameters", None) or {}
    if not isinstance(given, Mapping):
        raise CheckpointError(f"rope_parameters is {given!r}; expected fields by name")
    nested = [each for each in given.values() if isinstance(each, Mapping)]
    return nested or [given]


def _end_of_table(config: Any, kind: str, parameters: Mapping[str, Any]) -> int:
    given = parameters.get(_ORIGINAL) or getattr(config, _ORIGINAL, None)
    end = given or config.max_position_embeddings
    if not isinstance(end, int) or end < 1:
        raise CheckpointError(f"{kind} needs {_ORIGINAL}; found {given!r}")
    return end
