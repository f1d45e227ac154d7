"""`steps.parquet`: the verify steps of a run that is over, read back with the checks of the lines."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eaglebench.errors import InputFileError
from eaglebench.store import schema1
from eaglebench.store.lines import adapter
from eaglebench.store.records import StepLine, step_problem, with_gaps

_KNOWN = {each.name: each for each in fields(StepLine)}
_HINT = "the file was changed by hand, or is damaged"


def read_step_table(path: Path) -> tuple[list[StepLine], list[str]]:
    """All steps, and the names of columns that this version does not know.

    Raises:
        InputFileError: it is no such table, or a row contradicts itself.
    """
    import pyarrow as pa  # noqa: PLC0415  # slow to import, seldom needed
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        # From memory, since pyarrow takes only names that are text, and without a thread of its own
        # (pq.read_table starts some): one that outlives the interpreter aborts the process.
        file = pq.ParquetFile(pa.BufferReader(path.read_bytes()), pre_buffer=False)
        table = file.read(use_threads=False)
        table = table.rename_columns(schema1.names(table.column_names))
        known = [name for name in table.column_names if name in _KNOWN]
        if len(set(known)) < len(known):
            raise InputFileError(path, "a column is there twice", hint=_HINT)
        unknown = [name for name in table.column_names if name not in _KNOWN]
        rows = table.select(known).to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputFileError(path, f"is no table of verify steps: {error}", hint=_HINT) from error
    return [_record(path, number, row) for number, row in enumerate(rows, start=1)], unknown


def _record(path: Path, number: int, row: dict[str, Any]) -> StepLine:
    """One row of a typed table stands for all of them; what no type says is asked of each."""
    values = with_gaps({n: v for n, v in row.items() if v is not None or n != "parents"})
    values.setdefault("parents", ())
    try:
        if number == 1 or None in values.values():
            adapter(StepLine).validate_python(values)
        problem = step_problem(values)
    except ValidationError as error:
        finding = error.errors()[0]
        problem = f"{'.'.join(map(str, finding['loc']))}: {finding['msg']}"
    if problem is not None:
        raise InputFileError(path, f"row {number}: {problem}", hint=_HINT)
    lists = {n: tuple(v) for n, v in values.items() if isinstance(v, list)}
    return StepLine(**{**values, **lists})  # checking types that the table has is slow
