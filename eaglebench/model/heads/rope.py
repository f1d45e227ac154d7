"""Rotary settings of a head, in the old spelling (`rope_scaling`) and the new (`rope_parameters`).

Known are the kinds whose angles depend on the position alone. `dynamic` and `longrope` turn by the
longest request in a batch, so that one request's drafts would depend on another's; published
engines disagree on what they mean.
"""

from collections.abc import Mapping
from typing import Any

from eaglebench.errors import CheckpointError

DEFAULT_THETA = 10000.0
SECTIONS = ("mrope_section", "mrope_interleaved")
"""How three kinds of positions share the angles; three equal ones, as text has, are one."""
_ORIGINAL = "original_max_position_embeddings"
_NEEDS: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", _ORIGINAL),
    "yarn": ("factor", _ORIGINAL),
}
"""Kinds, and the numbers without which each is not defined."""


def read_rope(
    parameters: Mapping[str, Any] | None, scaling: Mapping[str, Any] | None, theta: float | None
) -> dict[str, Any]:
    """`rope_type`, `rope_theta` and what the kind needs, numbers as numbers.

    Raises:
        CheckpointError: the kind is unknown, a number is missing or no number, or the two
            spellings contradict each other.
    """
    kinds = {_kind(block) for block in (parameters, scaling) if block}
    if len(kinds) > 1:
        raise CheckpointError(f"rope_parameters and rope_scaling are of two types: {sorted(kinds)}")
    given = dict(parameters or scaling or {})
    kind = kinds.pop() if kinds else "default"
    if kind not in _NEEDS:
        raise CheckpointError(
            f"the rotary type {kind!r} is not known here; known: {', '.join(_NEEDS)}"
        )
    for name in ("type", *SECTIONS):
        given.pop(name, None)
    base = DEFAULT_THETA if theta is None else theta
    settings = {"rope_theta": base, **given, "rope_type": kind}
    for name in ("rope_theta", *_NEEDS[kind]):
        settings[name] = _number(settings, name, kind)
    return settings


def _kind(block: Mapping[str, Any]) -> str:
    nested = [name for name, value in block.items() if isinstance(value, Mapping)]
    if nested:
        raise CheckpointError(f"rotary settings by layer type ({', '.join(nested)}) are not known")
    kind = block.get("rope_type") or block.get("type")
    if kind == "mrope" or SECTIONS[0] in block:
        return "default"
    if kind is None and set(block) - {"rope_theta", "rope_type", "type"}:
        raise CheckpointError(f"rotary settings {dict(block)} have no rope_type")
    return str(kind or "default")


def _number(settings: Mapping[str, Any], name: str, kind: str) -> float | int:
    value = settings.get(name)
    try:
        number = float(value)  # type: ignore[arg-type]  # None and lists end in the handler
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"rotary settings of type {kind!r} need a number for {name}, not {value!r}"
        ) from error
    if number <= 0:
        raise CheckpointError(f"{name} is {value}; expected more than 0")
    return int(number) if name == _ORIGINAL else number
