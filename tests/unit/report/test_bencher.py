"""Bencher Metric Format."""

import json
from pathlib import Path
from typing import Any

import pytest

from eaglebench.report.bencher import render_bencher
from eaglebench.report.document import ReportDocument
from tests.unit.report.toy_documents import (
    CELL,
    ODD_NAME,
    in_cells,
    make_document,
    with_ratio,
    without_speed,
    without_turns,
)

SERIES = "toy/toy/float32"


def read(document: ReportDocument) -> dict[str, dict[str, Any]]:
    """Benchmarks by name."""
    found = json.loads(render_bencher(document))
    assert isinstance(found, dict)
    return found


def test_every_arm_is_a_benchmark(tmp_path: Path) -> None:
    """With its measures in full."""
    document = make_document(tmp_path)
    found = read(document)

    assert list(found) == [f"{SERIES}/{CELL}/radix", f"{SERIES}/{CELL}/no-cache"]
    for row in document.rows:
        measures = found[f"{SERIES}/{CELL}/{row.arm}"]
        assert row.speed is not None
        assert measures["acceptance_length"] == {"value": row.counts.acceptance_length}
        assert measures["throughput"] == {"value": row.speed.tokens_per_s}


def test_ratio_has_bounds_where_there_were_passes(tmp_path: Path) -> None:
    """Below and above the value; a single pass has none."""
    document = make_document(tmp_path)
    ratio = read(with_ratio(document, 1.02))[f"{SERIES}/{CELL}/radix"]["throughput_ratio"]

    assert ratio["value"] == pytest.approx(1.02)
    assert ratio["lower_value"] < 1.02 < ratio["upper_value"]
    assert read(document)[f"{SERIES}/{CELL}/radix"]["throughput_ratio"] == {"value": 1.0}
    assert "throughput_ratio" not in read(document)[f"{SERIES}/{CELL}/no-cache"]


def test_missing_values_are_left_out(tmp_path: Path) -> None:
    """A benchmark without a measure as well."""
    document = make_document(tmp_path)

    assert list(read(without_speed(document))[f"{SERIES}/{CELL}/radix"]) == ["acceptance_length"]
    assert read(without_turns(document)) == {}


def test_odd_names_come_back(tmp_path: Path) -> None:
    """JSON can hold any name."""
    assert list(read(in_cells(make_document(tmp_path), ODD_NAME))) == [
        f"{SERIES}/{ODD_NAME}/radix",
        f"{SERIES}/{ODD_NAME}/no-cache",
    ]
