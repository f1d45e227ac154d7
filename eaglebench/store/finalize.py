"""What is written when a run is over: tables for other tools, made from the lines."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from eaglebench.errors import InputFileError, StorageError
from eaglebench.files import is_file, read_text, write_text
from eaglebench.records.measured import MeasuredTurn
from eaglebench.store.lines import write_json
from eaglebench.store.records import StepLine, storable
from eaglebench.store.run_folder import RunFolder, list_runs


def write_tables(folder: RunFolder) -> None:
    """`requests.parquet`, `prompts.jsonl`, `steps.parquet`, and the run's line in `index.jsonl`.

    `steps.parquet` takes the place of `steps.jsonl`.

    Raises:
        StorageError: the disk refuses; the lines are intact.
    """
    turns = folder.turns()
    _write_parquet(folder.path / "requests.parquet", [_turn_row(turn) for turn in turns])
    steps = [
        storable(asdict(StepLine.of(key, number, step)))
        for key, mine in folder.steps().items()
        for number, step in enumerate(mine)
    ]
    _write_parquet(folder.path / "steps.parquet", steps)
    _write_prompts(folder, turns)
    if steps:
        (folder.path / "steps.jsonl").unlink(missing_ok=True)
    if folder.path.parent.name == "runs":  # a copied folder has no index beside it
        write_index(folder.path.parent.parent)


def _turn_row(turn: MeasuredTurn) -> dict[str, Any]:
    """A turn for a table, which has its steps in another one and no word for a struct without fields."""
    row = asdict(turn)
    del row["steps"]
    return {name: None if value == {} else value for name, value in row.items()}


def _write_prompts(folder: RunFolder, turns: Sequence[MeasuredTurn]) -> None:
    """Every distinct prompt; arms share one unless an earlier answer differed."""
    prompts = {(turn.question_id, turn.turn, turn.prompt_token_ids): turn for turn in turns}
    lines = [
        {
            "question_id": turn.question_id,
            "turn": turn.turn,
            "category": turn.category,
            "prompt_sha256": _digest(turn.prompt_token_ids),
            "prompt_token_ids": turn.prompt_token_ids,
        }
        for turn in prompts.values()
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    write_text(folder.path / "prompts.jsonl", text)


def _digest(token_ids: Sequence[int]) -> str:
    """SHA-256 over token ids."""
    return sha256(",".join(map(str, token_ids)).encode()).hexdigest()


def write_comparison(folder: RunFolder, comparison: Mapping[str, Any]) -> None:
    """`comparison.json`: arm against arm, question by question."""
    write_json(folder.path / "comparison.json", comparison)


def write_index(root: Path) -> None:
    """`index.jsonl`: one line a run, made anew from the manifests; unreadable runs are left out."""
    lines = []
    for run in list_runs(root):
        try:
            manifest = run.manifest()
        except InputFileError:
            continue
        kept = {name: manifest.get(name) for name in ("run_id", "status", "started", "ended")}
        lines.append(json.dumps({**kept, "suite": manifest["suite"]["name"]}, sort_keys=True))
    write_text(root / "index.jsonl", "".join(line + "\n" for line in lines))


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa  # noqa: PLC0415  # slow to import
    import pyarrow.parquet as pq  # noqa: PLC0415

    if not rows:
        return
    partial = path.with_name(path.name + ".tmp")
    try:
        table = pa.Table.from_pylist(rows)
        with partial.open("wb") as file:  # by handle: pyarrow takes only names that are text
            pq.write_table(table, file)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StorageError(f"{path} can't be written: {error.strerror or error}") from error


def read_cells_csv(folder: RunFolder) -> list[dict[str, str]]:
    """The rows of `cells.csv` as texts; none before a run is over.

    Raises:
        InputFileError: it can't be read.
    """
    path = folder.path / "cells.csv"
    return list(csv.DictReader(io.StringIO(read_text(path)))) if is_file(path) else []


def write_cells_csv(folder: RunFolder, rows: Sequence[Mapping[str, Any]]) -> None:
    """`cells.csv`: one row a cell and arm."""
    if not rows:
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_text(folder.path / "cells.csv", text.getvalue())
