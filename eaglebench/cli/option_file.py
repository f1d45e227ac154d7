"""Options out of a file: `--config FILE`, or `[tool.eaglebench]` of the nearest pyproject.toml."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from eaglebench.cli.many_type import ManyType
from eaglebench.cli.options import ListType, ObjectType
from eaglebench.errors import InputFileError
from eaglebench.files import is_file, kind_of
from eaglebench.records.flags import name_of


def apply_option_file(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    """Give the command the defaults of a file; flags and environment still come first.

    Raises:
        InputFileError: the file is broken, or holds an option that the command doesn't have.
    """
    if ctx.resilient_parsing:
        return
    path, values = _read(value)
    if values:
        ctx.default_map = _checked(ctx, path, values)


def file_values() -> dict[str, Any]:
    """Options of the nearest pyproject.toml, by their names with underscores.

    Raises:
        InputFileError: the file is broken.
    """
    from eaglebench.plan.matrix_file import underscored

    return underscored(_read(None)[1])


def _read(value: str | None) -> tuple[Path, Mapping[str, Any]]:
    if value is None:
        path = _nearest_pyproject()
        if path is None:
            return Path(), {}
    else:
        path = Path(value)
    # Imported here: --help must not wait for parsers of formats.
    from eaglebench.plan.matrix_file import read_mapping

    values: Any = read_mapping(path)
    tools = values.get("tool")
    section = tools.get("eaglebench") if isinstance(tools, Mapping) else None
    if path.name == "pyproject.toml" or section is not None:
        values = {} if section is None else section
    if not isinstance(values, Mapping):
        found = kind_of(values)
        raise InputFileError(path, f"[tool.eaglebench]: expected keys and values, found {found}")
    return path, values


def _nearest_pyproject() -> Path | None:
    here = Path.cwd()
    for folder in (here, *here.parents):
        if is_file(folder / "pyproject.toml"):
            return folder / "pyproject.toml"
    return None


def _checked(ctx: click.Context, path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values under the names of the command's parameters, in the shape click wants."""
    from eaglebench.plan.explain import unknown_name
    from eaglebench.plan.matrix_file import underscored

    options = {param.name: param for param in ctx.command.params if isinstance(param, click.Option)}
    known = sorted(str(name) for name in options if name not in {"config", "top_k"})
    names = {name_of(flag): str(o.name) for o in options.values() for flag in o.opts}
    checked: dict[str, Any] = {}
    for key, value in underscored(values).items():
        name = names.get(key, key)
        if name not in known:
            raise InputFileError(path, unknown_name(key, known))
        if name in checked:
            raise InputFileError(path, f"{key}: {name} is given twice, by two of its names")
        option = options[name]
        if option.multiple:
            checked[name] = _as_repeated(value)
        elif not isinstance(option.type, _shapes_taken_by(value)):
            raise InputFileError(path, f"{name}: expected one value, found {kind_of(value)}")
        else:
            checked[name] = value
    return checked


def _shapes_taken_by(value: Any) -> tuple[type[click.ParamType[Any]], ...]:
    """The types of options that a value of this shape can be for."""
    if isinstance(value, Mapping):
        return (ListType, ObjectType)
    return (ListType, ObjectType, ManyType) if isinstance(value, list) else (click.ParamType,)


def _as_repeated(value: Any) -> list[Any]:
    """A repeatable option takes a list of what one flag takes."""
    if isinstance(value, Mapping):
        return [(str(key), _as_typed(text)) for key, text in value.items()]
    return list(value) if isinstance(value, list) else [value]


def _as_typed(value: Any) -> str:
    """What a flag would say: words as they stand, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, default=str)
