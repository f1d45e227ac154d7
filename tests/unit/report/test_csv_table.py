"""Rows as CSV, read back."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from eaglebench.report.csv_table import ACROSS, render_csv
from eaglebench.report.run_key import run_key
from tests.unit.report.toy_documents import (
    ODD_NAME,
    in_cells,
    make_document,
    with_rows,
    without_turns,
)


def read(text: str) -> list[dict[str, str]]:
    """Lines as a spreadsheet reads them."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def shown(value: Any) -> str:
    """A value as it is written."""
    return "" if value is None else str(value)


@pytest.mark.parametrize("is_empty", [False, True])
def test_numbers_come_back_in_full(tmp_path: Path, is_empty: bool) -> None:
    """Every value of every row, digit for digit; what was not measured is an empty field."""
    document = make_document(tmp_path)
    document = without_turns(document) if is_empty else document
    lines = read(render_csv(document))

    assert len(lines) == len(document.rows)
    for line, row in zip(lines, document.rows, strict=True):
        told = {**run_key(document.run), **row.as_dict(), **dict.fromkeys(ACROSS)}
        assert line == {name: shown(value) for name, value in told.items()}


@pytest.mark.parametrize("name", [ODD_NAME, 'a,"b"', "a\r\nb", "a\rb", "ü;\tx", "\x00"])
def test_odd_names_stay_in_their_field(tmp_path: Path, name: str) -> None:
    """Commas, quotes and line ends of any kind."""
    lines = read(render_csv(in_cells(make_document(tmp_path), name)))

    assert [line["cell_id"] for line in lines] == [name, name]
    assert [line["num_failed"] for line in lines] == ["0", "0"]


def test_header_needs_no_row(tmp_path: Path) -> None:
    """The same names with and without rows."""
    document = make_document(tmp_path)
    header = render_csv(document).splitlines()[0]

    assert render_csv(with_rows(document, [])) == f"{header}\n"


def test_pandas_reads_the_numbers(tmp_path: Path) -> None:
    """As numbers, with gaps where nothing was measured."""
    import pandas as pd

    document = without_turns(make_document(tmp_path))
    frame = pd.read_csv(io.StringIO(render_csv(document)))

    assert frame["verify_steps"].tolist() == [0, 0]
    assert frame["acceptance_length"].isna().all()
