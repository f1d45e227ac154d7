"""pydantic's findings in one line a finding, with the nearest known name for an unknown one."""

from collections.abc import Sequence
from difflib import get_close_matches

from pydantic import BaseModel, ValidationError

_OURS = "Value error, "
"""What pydantic puts in front of a validator's own words."""


def explain_validation(error: ValidationError, model: type[BaseModel]) -> str:
    """What is wrong, finding by finding, joined by semicolons."""
    names = _all_field_names(model)
    return "; ".join(
        _explain(finding["type"], finding["loc"], finding["msg"], names)
        for finding in error.errors(include_url=False)
    )


def unknown_name(name: str, known: Sequence[str]) -> str:
    """`unknown key 'x'` with the nearest known names."""
    near = get_close_matches(name, known, n=2, cutoff=0.6)
    return f"unknown key {name!r}" + (f"; did you mean {' or '.join(near)}?" if near else "")


def _explain(kind: str, location: tuple[int | str, ...], message: str, names: list[str]) -> str:
    where = ".".join(str(part) for part in location)
    if kind == "extra_forbidden":
        return f"{where}: {unknown_name(str(location[-1]), names)}"
    if kind == "missing":
        return f"{where} is missing"
    reason = message.removeprefix(_OURS)
    if reason == message:
        reason = f"{message[0].lower()}{message[1:]}"
    return f"{where}: {reason}" if where else reason


def _all_field_names(model: type[BaseModel]) -> list[str]:
    """Field names of a model and of the models inside it."""
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return sorted({name for part in parts for name in part.get("properties", {})})
