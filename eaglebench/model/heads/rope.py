"""Rotary settings of a head, in the old spelling (`rope_scaling`) and the new (`rope_parameters`).

Known are the kinds whose angles depend on the position alone. `dynamic` and `longrope` turn by the
longest request in a batch, so that one request's drafts would depend on another's; published
engines disagree on what they mean. Whatever a kind does not know is refused by name.
"""

import math
from collections.abc import Mapping
from typing import Any

from eaglebench.errors import CheckpointError

DEFAULT_THETA = 10000.0
SHARE = "partial_rotary_factor"
SHARE_WORDS = ("rotary_pct", "rope_pct", "rotary_percent", "rotary_percentage")
"""What other projects call it."""
SECTIONS = ("mrope_section", "mrope_interleaved")
"""How three kinds of positions share the angles; three equal ones, as text has, are one."""
_SHARES = {SHARE, *SHARE_WORDS}
_ORIGINAL = "original_max_position_embeddings"
_NEEDS: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", _ORIGINAL),
    "yarn": ("factor", _ORIGINAL),
}
"""Kinds, and the numbers without which each is not defined."""
_MAY = {
    "yarn": {"attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"}
}
_LEAST = {"rope_theta": 1.0, "factor": 1.0}
_MOST = {"rope_theta": 1e15, _ORIGINAL: 2**31}


def read_rope(
    parameters: Mapping[str, Any] | None, scaling: Mapping[str, Any] | None, theta: float | None
) -> dict[str, Any]:
    """`rope_type`, `rope_theta` and what the kind needs, numbers as numbers.

    Raises:
        CheckpointError: the kind or a setting is unknown, a number is missing or no number, or the
            two spellings contradict each other.
    """
    named = {"rope_parameters": parameters, "rope_scaling": scaling}
    blocks = {name: _said(block) for name, block in named.items() if block}
    kinds = {_kind(name, block) for name, block in blocks.items()}
    if len(kinds) > 1:
        raise CheckpointError(f"rope_parameters and rope_scaling are of two types: {sorted(kinds)}")
    kind = kinds.pop() if kinds else "default"
    where = " and ".join(blocks) or "rope_theta"
    if kind not in _NEEDS:
        raise CheckpointError(
            f"{where}: the rotary type {kind!r} is not known here; known: {', '.join(_NEEDS)}"
        )
    base = DEFAULT_THETA if theta is None else theta
    settings: dict[str, Any] = {"rope_theta": base, **_merged(blocks), "rope_type": kind}
    _check_known(settings, kind, where)
    for name in [*settings, *_NEEDS[kind]]:
        if name not in {"rope_type", "truncate"}:
            settings[name] = _number(settings.get(name), name, kind)
    _check_together(settings, where)
    return settings


def read_shares(blocks: Mapping[str, Mapping[str, Any] | None]) -> dict[str, Any]:
    """Every place inside the blocks that says what share of a head is rotated, and what it says."""
    return {
        f"{name}.{key}": value
        for name, block in blocks.items()
        for key, value in (block or {}).items()
        if key in _SHARES and value is not None
    }


def rotated_width(width: int, shares: Mapping[str, Any], dims: int | None) -> int:
    """Dimensions of a head of this width that are rotated, from the first on.

    `shares` has every place that says what share is rotated; `dims` is `rotary_dim`.

    Raises:
        CheckpointError: they contradict each other, or leave nothing that can be rotated.
    """
    found = {name: int(width * _share(name, value)) for name, value in shares.items()}
    if dims is not None:
        found["rotary_dim"] = dims
    if len(set(found.values())) > 1:
        words = ", ".join(f"{name} {count}" for name, count in found.items())
        raise CheckpointError(
            f"dimensions that are rotated, said in ways that don't agree: {words}"
        )
    rotated = next(iter(found.values()), width)
    if rotated < 2 or rotated % 2 or rotated > width:
        words = ", ".join([*found, "head_dim"])
        raise CheckpointError(
            f"{rotated} of {width} dimensions of a head would be rotated ({words}); expected an even "
            "number up to all"
        )
    return rotated


def _said(block: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if value is not None}


def _kind(where: str, block: Mapping[str, Any]) -> str:
    nested = [name for name, value in block.items() if isinstance(value, Mapping)]
    if nested:
        raise CheckpointError(
            f"{where}: rotary settings by layer type ({', '.join(nested)}) are not known"
        )
    words = {str(block[name]) for name in ("rope_type", "type") if name in block}
    words = {"default" if word == "mrope" else word for word in words}
    if len(words) > 1:
        raise CheckpointError(f"{where}: rope_type and type don't agree: {sorted(words)}")
    kind = words.pop() if words else None
    if SECTIONS[0] in block:
        if kind not in {None, "default"}:
            raise CheckpointError(
                f"{where}: mrope_section beside the rotary type {kind!r}: SGLang would rotate plainly, "
                "others would not"
            )
        return "default"
    if kind is None and set(block) - {"rope_theta", *_SHARES, *SECTIONS}:
        raise CheckpointError(f"{where}: rotary settings {dict(block)} have no rope_type")
    return kind or "default"


def _merged(blocks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The settings of both spellings; a CheckpointError if one has two values."""
    merged: dict[str, Any] = {}
    for block in blocks.values():
        for name, value in block.items():
            if name in {"type", "rope_type", *SECTIONS, *_SHARES}:
                continue
            if merged.setdefault(name, value) != value:
                raise CheckpointError(
                    f"{name} is {merged[name]} in rope_parameters and {value} in rope_scaling"
                )
    return merged


def _check_known(settings: Mapping[str, Any], kind: str, where: str) -> None:
    known = {"rope_theta", "rope_type", *_NEEDS[kind], *_MAY.get(kind, ())}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise CheckpointError(
            f"{where}: {', '.join(unknown)} mean nothing for the rotary type {kind!r}, as it is known "
            "here"
        )
    if not isinstance(settings.get("truncate", True), bool):
        raise CheckpointError(
            f"{where}: truncate is {settings['truncate']!r}; expected true or false"
        )


def _check_together(settings: Mapping[str, Any], where: str) -> None:
    """Settings that make sense with each other only."""
    for kind, less, more, usual in (
        ("llama3", "low_freq_factor", "high_freq_factor", {}),
        ("yarn", "beta_slow", "beta_fast", {"beta_slow": 1, "beta_fast": 32}),
    ):
        if settings["rope_type"] != kind:
            continue
        low, high = (settings.get(name, usual.get(name)) for name in (less, more))
        if low >= high:
            raise CheckpointError(
                f"{where}: {less} is {low}, {more} {high}; expected it to be more"
            )
    scales = [name for name in ("mscale", "mscale_all_dim") if name in settings]
    if len(scales) == 1 or (scales and "attention_factor" in settings):
        raise CheckpointError(
            f"{where}: mscale and mscale_all_dim mean something together, and without an "
            f"attention_factor; given: {', '.join(scales)}"
        )


def _real(value: Any) -> float:
    """A number or a text that is one; NaN for anything else."""
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _share(name: str, value: Any) -> float:
    number = _real(value)
    if not 0 < number <= 1:
        raise CheckpointError(f"{name} is {value!r}; expected more than 0, at most 1")
    return number


def _number(value: Any, name: str, kind: str) -> float | int:
    number = _real(value)
    if not math.isfinite(number):
        raise CheckpointError(
            f"rotary settings of rope_type {kind!r} need a number for {name}, not {value!r}"
        )
    least, most = _LEAST.get(name, 0), _MOST.get(name, 1e6)
    is_enough = number >= least if name == "factor" else number > least
    if not is_enough or number > most:
        words = "at least 1" if name == "factor" else f"more than {least:g}"
        raise CheckpointError(f"{name} is {value}; expected {words}, at most {most:g}")
    if name != _ORIGINAL:
        return number
    if number != int(number):
        raise CheckpointError(f"{name} is {value}; expected a whole number")
    return int(number)
