"""The report as JSON."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from eaglebench.report.document import ReportDocument
from eaglebench.report.json_document import json_text, render_json
from tests.fakes import Plant
from tests.sessions import make_cell
from tests.unit.report.toy_documents import (
    ODD_NAME,
    in_cells,
    make_document,
    with_findings,
    with_ratio,
    with_sweeps,
)


def read(document: ReportDocument) -> dict[str, Any]:
    """The document, refusing what is no JSON."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    found = json.loads(render_json(document), parse_constant=refuse)
    assert isinstance(found, dict)
    return found


def test_document_holds_rows_and_facts(tmp_path: Path) -> None:
    """Numbers come back as they were."""
    document = make_document(tmp_path, notes=["a remark"])
    found = read(document)

    assert found["run"]["run_id"] == document.run.run_id
    assert found["run"]["environment"]["timing"] == {"cores": 2, "cpu": "Toy 3000"}
    assert found["notes"] == ["a remark"]
    for row, entry in zip(document.rows, found["rows"], strict=True):
        assert row.as_dict().items() <= entry.items()
        assert entry["by_position"] == list(row.by_position)


def test_differences_name_what_parted(tmp_path: Path) -> None:
    """Against each other arm, with the ratio over passes."""
    document = make_document(tmp_path, plants={"radix": [Plant(word="odd")]})
    (entry,) = read(with_ratio(document, 0.99))["differences"]

    assert (entry["arm"], entry["against"]) == ("radix", "no-cache")
    assert [pair["question_id"] for pair in entry["parted"]] == ["odd"]
    assert entry["ratio"]["passes"] == 8
    assert entry["ratio"]["change"] < 0 < entry["ratio"]["mde"]


def test_judgement_is_whole(tmp_path: Path) -> None:
    """Verdict and findings."""
    document = make_document(tmp_path)
    found = read(document)["judgement"]

    assert (found["verdict"], found["baseline"]) == ("PASS", "no-cache")
    assert len(found["findings"]) == len(document.judgement.findings) == 1


def test_infinite_changes_are_null(tmp_path: Path) -> None:
    """A change from nothing has no number in JSON."""
    document = make_document(tmp_path)
    finding = replace(document.judgement.findings[0], change=float("inf"), before=float("nan"))
    (found,) = read(with_findings(document, finding))["judgement"]["findings"]

    assert found["change"] is None
    assert found["before"] is None


def test_odd_names_come_back(tmp_path: Path) -> None:
    """JSON can hold any name."""
    found = read(in_cells(make_document(tmp_path), ODD_NAME))

    assert {row["cell_id"] for row in found["rows"]} == {ODD_NAME}


def test_numbers_inside_lists_are_checked_too() -> None:
    """However deep they are."""
    assert json.loads(json_text({"a": [{"b": (float("nan"), 1.5)}]})) == {"a": [{"b": [None, 1.5]}]}


def test_draft_shapes_are_there_for_machines(tmp_path: Path) -> None:
    """Every cell of a sweep, the reference and the fastest by their cells' ids."""
    cells = [make_cell(num_steps=steps, num_draft_tokens=steps + 1) for steps in (1, 2)]
    document = with_sweeps(make_document(tmp_path, cells=cells))
    (sweep,) = read(document)["sweeps"]

    names = [cell.cell_id for cell in cells]
    assert [entry["cell_id"] for entry in sweep["cells"]] == names
    assert {sweep["reference"], sweep["fastest"]["cell_id"]} <= set(names)
    assert sweep["fastest"]["passes"] == 1
    assert len(sweep["fastest"]["not_told_apart"]) == 1
