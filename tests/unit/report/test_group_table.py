"""Acceptance by category and turn: what is pooled, and where it is shown."""

import json
from dataclasses import replace
from pathlib import Path

from eaglebench.report.document import ReportDocument
from eaglebench.report.group_table import group_table
from eaglebench.report.json_document import render_json
from eaglebench.report.markdown import render_markdown
from eaglebench.stats.groups import make_groups
from tests.sessions import make_cell, make_talk
from tests.unit.report.toy_documents import make_document


def make_grouped(root: Path, *, is_one: bool = False, **options: object) -> ReportDocument:
    """A run of two categories, one of them asked in two turns."""
    talks = [
        replace(make_talk("a", "Tell me one thing.", "And then?"), category="writing"),
        replace(make_talk("b", "Tell me another."), category="maths"),
    ]
    document = make_document(root, talks=talks[1:] if is_one else talks, **options)  # type: ignore[arg-type]
    return replace(document, groups=tuple(make_groups(document.run.turns)))


def test_each_category_and_turn_has_its_length(tmp_path: Path) -> None:
    """Pooled as everywhere: tokens over verify steps, an arm a column."""
    document = make_grouped(tmp_path)
    table = group_table(document)
    turns = [t for t in document.run.turns if t.arm == "radix" and t.category == "writing"]
    steps = sum(t.counters.verify_steps or 0 for t in turns)
    emitted = sum(t.counters.emitted or 0 for t in turns)

    assert table is not None
    assert [c.heading for c in table.columns] == ["of", "turns", "radix", "no-cache"]
    assert [row[:2] for row in table.rows] == [
        ("category writing", 2),
        ("category maths", 1),
        ("turn 1", 2),
        ("turn 2", 1),
    ]
    assert table.rows[0][2] == emitted / steps
    assert table.rows[0][2] != table.rows[1][2]
    assert table.title in render_markdown(document)


def test_of_several_cells_the_cells_stand_across(tmp_path: Path) -> None:
    """In the arm that stands for them, named by what varies."""
    cells = [make_cell(), make_cell(chunked_prefill_size=8)]
    table = group_table(make_grouped(tmp_path, cells=cells))

    assert table is not None
    assert [c.heading for c in table.columns] == ["of", "turns", "chunkoff", "chunk8"]
    assert table.title.startswith("Acceptance length by category and turn (radix, ")


def test_many_cells_stand_down(tmp_path: Path) -> None:
    """More columns than a screen has would be cut."""
    cells = [make_cell(page_size=size) for size in (1, 2, 4, 8, 16)]
    table = group_table(make_grouped(tmp_path, cells=cells))

    assert table is not None
    assert [row[0] for row in table.rows] == ["page1", "page2", "page4", "page8", "page16"]
    heads = ["cell", "category writing", "category maths", "turn 1", "turn 2"]
    assert [c.heading for c in table.columns] == heads


def test_one_category_and_one_turn_need_no_table(tmp_path: Path) -> None:
    """It would say what the run's table says."""
    assert group_table(make_grouped(tmp_path, is_one=True)) is None


def test_json_holds_the_counts(tmp_path: Path) -> None:
    """Integers of every cell and arm, the ratio beside them."""
    groups = json.loads(render_json(make_grouped(tmp_path)))["groups"]

    assert [(g["kind"], g["name"]) for g in groups] == [
        ("category", "writing"),
        ("category", "maths"),
        ("turn", "1"),
        ("turn", "2"),
    ]
    (radix, _) = groups[0]["counts"]
    assert radix["acceptance_length"] == radix["emitted"] / radix["verify_steps"]
