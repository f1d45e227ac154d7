"""The full report in Markdown."""

from dataclasses import replace
from pathlib import Path

from eaglebench.records.verdict import Finding
from eaglebench.report.markdown import render_markdown
from tests.fakes import Plant
from tests.sessions import make_talk
from tests.unit.report.toy_documents import (
    CELL,
    ODD_NAME,
    in_cells,
    make_document,
    with_findings,
    with_ratio,
    with_rows,
    without_turns,
)


def sections(text: str) -> dict[str, str]:
    """Texts under the second-level headings."""
    heads = [part.partition("\n") for part in text.split("\n## ")[1:]]
    return {head: body.strip() for head, _, body in heads}


def cells_of(table: str, first: str) -> list[str]:
    """The cells of the line that begins with this one."""
    (line,) = [line for line in table.splitlines() if line.startswith(f"| {first} ")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_sections_are_in_order(tmp_path: Path) -> None:
    """Verdict first, then what it rests on, then the setting."""
    text = render_markdown(make_document(tmp_path))

    assert text.startswith(f"# suite toy, target toy, float32, cell {CELL}\n\n**PASS**: ")
    assert list(sections(text)) == [
        "Notes",
        "Findings",
        "Cells and arms",
        "Against other arms",
        "Turns that part",
        "Environment",
        "Suite",
        "Models",
        "Options",
    ]


def test_every_counter_is_shown(tmp_path: Path) -> None:
    """All values of a row, an arm beside the other."""
    document = make_document(tmp_path)
    text = render_markdown(document)

    for name, value in document.rows[0].as_dict().items():
        if isinstance(value, int):
            assert cells_of(text, name)[1] == str(value)


def test_positions_of_arms_with_fewer_drafts_are_dashes(tmp_path: Path) -> None:
    """An arm that drafted one token has no share at the second position."""
    document = make_document(tmp_path)
    first, second = document.rows
    rows = [first, replace(second, by_position=second.by_position[:1])]
    text = render_markdown(with_rows(document, rows))

    table = text.partition("### Acceptance by position")[2]
    assert cells_of(table.partition("##")[0], "no-cache")[2] == "-"


def test_only_turns_that_part_are_listed(tmp_path: Path) -> None:
    """With class, first differing choice and gap."""
    plants = {"radix": [Plant(word="odd"), Plant(word="item 1", gap=1e-5)]}
    table = sections(render_markdown(make_document(tmp_path, plants=plants)))["Turns that part"]

    assert len(table.splitlines()) == 2 + 2
    assert cells_of(table, "odd")[5:8] == ["matched", "draft-state", "draft"]
    assert table.count("near-tie") == 1
    assert "1e-05" in table


def test_equal_arms_have_no_turns_that_part(tmp_path: Path) -> None:
    """The section says so."""
    text = render_markdown(make_document(tmp_path))

    assert sections(text)["Turns that part"] == "none"


def test_findings_show_what_was_allowed(tmp_path: Path) -> None:
    """Counts in full, shares as such; infinite changes are no number."""
    finding = Finding(
        cell_id=CELL,
        arm="radix",
        metric="evictions",
        verdict="REGRESSED",
        reason="evictions 0 -> 1234567",
        before=0,
        after=1234567,
        change=float("inf"),
        allowed=0.01,
        questions=("q0", "q1"),
    )
    table = sections(render_markdown(with_findings(make_document(tmp_path), finding)))["Findings"]

    assert cells_of(table, "REGRESSED") == [
        *("REGRESSED", CELL, "radix", "evictions", "evictions 0 -> 1234567", "-", "-", "-"),
        *("q0, q1", "0", "1234567", "1.00%"),
    ]


def test_notes_of_run_and_judgement_are_shown(tmp_path: Path) -> None:
    """Both, in this order."""
    document = make_document(tmp_path, notes=["of the run"])
    judgement = replace(document.judgement, notes=("of the judgement",))
    text = render_markdown(replace(document, judgement=judgement))

    assert sections(text)["Notes"] == "- of the run\n- of the judgement"


def test_ratio_shows_interval_and_power(tmp_path: Path) -> None:
    """What so many passes could have detected, and how they drifted."""
    table = sections(render_markdown(with_ratio(make_document(tmp_path), 0.99)))

    assert "-1.00% +- 1.00% (8 passes)" in table["Against other arms"]
    assert "+0.30%" in table["Against other arms"]


def test_odd_names_break_no_table(tmp_path: Path) -> None:
    """Every table line has as many cells as its head."""
    talks = [make_talk(ODD_NAME, "an odd thing"), make_talk("plain", "a thing")]
    document = make_document(tmp_path, plants={"radix": [Plant(word="odd")]}, talks=talks)
    text = render_markdown(in_cells(document, ODD_NAME))

    assert "| a\\|b<br>&lt;x> \\`ü\\` \ufffd\\* " in text
    for table in text.split("\n\n"):
        if table.startswith("|"):
            lines = [line.replace("\\|", "") for line in table.splitlines()]
            assert len({line.count("|") for line in lines}) == 1
            assert all(line.startswith("|") for line in lines)


def test_options_and_environment_are_whole(tmp_path: Path) -> None:
    """Names and values; lists with commas, a dash for what is not known."""
    document = make_document(tmp_path)
    run = replace(document.run, config={"seed": 0, "limits": None, "arms": ["radix"]})
    text = sections(render_markdown(replace(document, run=run)))

    assert cells_of(text["Options"], "limits") == ["limits", "-"]
    assert cells_of(text["Options"], "arms") == ["arms", "radix"]
    assert cells_of(text["Environment"], "cpu") == ["cpu", "Toy 3000"]


def test_nothing_measured_is_dashes(tmp_path: Path) -> None:
    """No ratio, no share, no speed."""
    text = sections(render_markdown(without_turns(make_document(tmp_path))))

    assert cells_of(text["Cells and arms"], "acceptance_length")[1:] == ["-", "-"]
    assert cells_of(text["Cells and arms"], "tokens_per_s")[1:] == ["-", "-"]
    assert text["Against other arms"] == "none\n\nnone"
