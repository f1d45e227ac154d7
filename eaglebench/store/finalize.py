"""What is written when a run is over: tables for other tools, made from the lines."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from eaglebench.errors import StorageError
from eaglebench.store.lines import write_text
from eaglebench.store.run_folder import RunFolder


def write_tables(folder: RunFolder) -> None:
    """`requests.parquet` and `steps.parquet`; the latter takes the place of `steps.jsonl`.

    Raises:
        StorageError: the disk refuses; the lines are intact.
    """
    _write_parquet(folder.path / "requests.parquet", folder.turns())
    steps = [record for records in folder.steps().values() for record in records]
    _write_parquet(folder.path / "steps.parquet", steps)
    if steps:
        (folder.path / "steps.jsonl").unlink(missing_ok=True)


def _write_parquet(path: Path, records: Sequence[BaseModel]) -> None:
    import pyarrow as pa  # noqa: PLC0415  # slow to import
    import pyarrow.parquet as pq  # noqa: PLC0415

    if not records:
        return
    partial = path.with_name(path.name + ".tmp")
    try:
        pq.write_table(pa.Table.from_pylist([record.model_dump() for record in records]), partial)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StorageError(f"{path} can't be written: {error.strerror}") from error


def write_cells_csv(folder: RunFolder, rows: Sequence[Mapping[str, Any]]) -> None:
    """`cells.csv`: one row a cell and arm."""
    if not rows:
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_text(folder.path / "cells.csv", text.getvalue())
