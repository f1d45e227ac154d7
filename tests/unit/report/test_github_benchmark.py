"""The list for github-action-benchmark."""

import json
from pathlib import Path
from typing import Any

from eaglebench.report.document import ReportDocument
from eaglebench.report.github_benchmark import render_github_benchmark
from tests.unit.report.toy_documents import (
    CELL,
    in_cells,
    make_document,
    with_ratio,
    without_speed,
    without_turns,
)

SERIES = "toy/toy/float32"


def read(document: ReportDocument) -> dict[str, dict[str, Any]]:
    """Entries by name; names are unique."""
    entries = json.loads(render_github_benchmark(document))
    by_name = {entry["name"]: entry for entry in entries}
    assert len(by_name) == len(entries)
    return by_name


def test_every_arm_has_length_and_throughput(tmp_path: Path) -> None:
    """Values in full, in units in which more is better."""
    document = make_document(tmp_path)
    entries = read(document)

    assert list(entries) == [
        f"{SERIES} {CELL} {arm} {what}"
        for arm in ("radix", "no-cache")
        for what in ("acceptance length", "throughput")
    ]
    length = entries[f"{SERIES} {CELL} radix acceptance length"]
    assert (length["unit"], length["value"]) == (
        "tokens/step",
        document.rows[0].counts.acceptance_length,
    )
    assert entries[f"{SERIES} {CELL} radix throughput"]["unit"] == "token/s"


def test_range_is_that_of_the_ratio(tmp_path: Path) -> None:
    """Where there were passes; `no-cache` is what the others are held against."""
    document = make_document(tmp_path)
    entries = read(with_ratio(document, 1.02))

    assert entries[f"{SERIES} {CELL} radix throughput"]["range"] == "+- 1.00%"
    assert entries[f"{SERIES} {CELL} radix throughput"]["extra"] == (
        "against no-cache: +2.00% +- 1.00% (8 passes)"
    )
    assert "range" not in entries[f"{SERIES} {CELL} no-cache throughput"]
    assert "range" not in read(document)[f"{SERIES} {CELL} radix throughput"]


def test_missing_values_are_left_out(tmp_path: Path) -> None:
    """They are never 0."""
    document = make_document(tmp_path)

    assert [name for name in read(without_speed(document)) if "throughput" in name] == []
    assert read(without_turns(document)) == {}


def test_sixty_cells_are_told_apart(tmp_path: Path) -> None:
    """Two entries for each cell and arm."""
    entries = read(in_cells(make_document(tmp_path), *(f"cell{n}" for n in range(60))))

    assert len(entries) == 60 * 2 * 2
