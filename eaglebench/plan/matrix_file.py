"""Matrix files: YAML, TOML or JSON with `axes`, `zip`, `include` and `exclude`."""

import json
import tomllib
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from eaglebench.errors import InputFileError
from eaglebench.plan.matrix import AXES


class MatrixFile(BaseModel):
    """What a matrix file may hold."""

    model_config = ConfigDict(extra="forbid")

    axes: dict[str, list[Any]] = {}
    zip: dict[str, list[Any]] = {}
    include: list[dict[str, Any]] = []
    exclude: list[dict[str, Any]] = []


def read_matrix_file(path: Path) -> dict[str, Any]:
    """Read and check a matrix file.

    Raises:
        InputFileError: it can't be read, is no such file, or names an unknown axis.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputFileError(path, f"can't be read: {error.strerror}") from error
    try:
        loaded = _parse(path, text)
        matrix = MatrixFile.model_validate(loaded)
    except (ValueError, yaml.YAMLError, ValidationError) as error:
        raise InputFileError(
            path,
            f"is not a matrix: {error}",
            hint="expected axes: {page_size: [1, 16]}, and if need be zip:, include:, exclude:",
        ) from error
    named = [*matrix.axes, *matrix.zip, *(n for m in matrix.include + matrix.exclude for n in m)]
    for name in named:
        if name not in AXES:
            raise InputFileError(
                path, f"no axis is called {name!r}", hint=f"axes: {', '.join(AXES)}"
            )
    lengths = {len(values) for values in matrix.zip.values()}
    if len(lengths) > 1:
        raise InputFileError(path, f"lists under zip have different lengths: {sorted(lengths)}")
    return matrix.model_dump()


def _parse(path: Path, text: str) -> Any:
    if path.suffix == ".toml":
        return tomllib.loads(text)
    if path.suffix == ".json":
        return json.loads(text)
    return yaml.safe_load(text)
