"""Files that hold a matrix or the options of a run: YAML, TOML or JSON."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from eaglebench.errors import InputFileError
from eaglebench.files import is_file, kind_of, parse_json, read_text
from eaglebench.plan.explain import explain_validation
from eaglebench.plan.matrix import MatrixSpec
from eaglebench.plan.suite import shipped_folder


def read_mapping(path: Path) -> dict[str, Any]:
    """The keys and values of a YAML, TOML or JSON file, told apart by its ending.

    Raises:
        InputFileError: it can't be read, is broken, or holds something else than keys and values.
    """
    text = read_text(path)
    try:
        value = _decode(path, text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputFileError(path, f"broken YAML: {error.problem}", line=line) from error
    except RecursionError as error:
        raise InputFileError(path, "nested too deeply") from error
    except (ValueError, yaml.YAMLError) as error:  # of TOML, and of dates and numbers in YAML
        raise InputFileError(path, f"broken: {error}") from error
    if not isinstance(value, dict):
        raise InputFileError(path, f"expected keys and values, found {kind_of(value)}")
    return value


def matrix_path(name: str) -> Path:
    """The file of a matrix: any file by its path, one that ships with eaglebench by its name."""
    shipped = Path(str(shipped_folder() / "matrices" / f"{name}.toml"))
    return shipped if is_file(shipped) and not Path(name).exists() else Path(name)


def matrix_names() -> list[str]:
    """Matrices that ship with eaglebench."""
    folder = shipped_folder() / "matrices"
    return sorted(each.name.removesuffix(".toml") for each in folder.iterdir())


def read_matrix_file(path: Path) -> MatrixSpec:
    """A matrix: `axes`, `zip`, `include`, `exclude`.

    Raises:
        InputFileError: the file is broken, or holds unknown axes or impossible values.
    """
    return make_matrix(read_mapping(path), path)


def make_matrix(values: Mapping[str, Any], where: Path | str) -> MatrixSpec:
    """A matrix of keys and values.

    Raises:
        InputFileError: they name unknown axes or impossible values; says `where` they stand.
    """
    try:
        return MatrixSpec.model_validate(_normalised(values))
    except ValidationError as error:
        raise InputFileError(where, explain_validation(error, MatrixSpec)) from error


def underscored(values: Mapping[Any, Any]) -> dict[str, Any]:
    """The same values under names with underscores: `page-size` is `page_size`."""
    return {str(name).replace("-", "_"): value for name, value in values.items()}


def _decode(path: Path, text: str) -> Any:
    ending = path.suffix.lower()
    if ending == ".toml":
        return tomllib.loads(text)
    if ending == ".json":
        return parse_json(path, text)
    return yaml.safe_load(text)


def _normalised(values: Mapping[str, Any]) -> dict[str, Any]:
    """Axis names with underscores, single values as lists, one zip group as a list of groups."""
    normalised = dict(values)
    if isinstance(axes := normalised.get("axes"), dict):
        normalised["axes"] = _lists(axes)
    if isinstance(normalised.get("zip"), dict):
        normalised["zip"] = [normalised["zip"]]
    if isinstance(groups := normalised.get("zip"), list):
        normalised["zip"] = [_lists(group) for group in groups if isinstance(group, dict)]
    for name in ("include", "exclude"):
        if isinstance(points := normalised.get(name), list):
            normalised[name] = [underscored(p) if isinstance(p, dict) else p for p in points]
    return normalised


def _lists(axes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, list) else [value]
        for name, value in underscored(axes).items()
    }
