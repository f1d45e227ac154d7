"""What holds for every text format."""

from pathlib import Path

import pytest

from eaglebench.cli.report_command import report
from eaglebench.report.formats import FORMATS, render
from tests.fakes import Plant
from tests.sessions import make_talk
from tests.unit.report.toy_documents import (
    CELL,
    ODD_NAME,
    in_cells,
    make_document,
    with_ratio,
    with_rows,
    without_speed,
    without_turns,
)

TEXTS = sorted(set(FORMATS) - {"html"})


def test_every_format_on_offer_is_there() -> None:
    """The command line offers what can be rendered, in the order of the registry."""
    (choice,) = [option.type for option in report.params if option.name == "form"]

    assert list(choice.choices) == list(FORMATS)  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", TEXTS)
def test_same_run_gives_the_same_text(form: str, tmp_path: Path) -> None:
    """Two runs of the same toy, in two folders, are told in the same words."""
    first, second = (
        make_document(tmp_path / name, plants={"radix": [Plant(word="odd")]})
        for name in ("one", "other")
    )

    assert render(form, first) == render(form, second)


@pytest.mark.parametrize("form", TEXTS)
def test_odd_names_are_written(form: str, tmp_path: Path) -> None:
    """Names with line ends, control characters and halves of a pair can be stored as UTF-8."""
    plants = {"radix": [Plant(word="odd")]}
    talks = [make_talk(ODD_NAME, "an odd thing"), make_talk("plain", "a thing")]
    document = make_document(tmp_path, plants=plants, talks=talks, notes=["half \ud800 a pair"])
    text = render(form, in_cells(document, CELL, ODD_NAME))

    assert text.encode()
    assert text.endswith("\n")


@pytest.mark.parametrize("form", TEXTS)
def test_nothing_measured_is_no_number(form: str, tmp_path: Path) -> None:
    """Without a turn and without times there is neither a NaN nor a word of Python's."""
    document = make_document(tmp_path)
    for less in (without_turns(document), without_speed(document), with_rows(document, [])):
        text = render(form, less)

        assert not {"nan", "inf", "None", "NaN"} & set(text.replace(",", " ").split())


@pytest.mark.parametrize("form", TEXTS)
def test_one_question_is_enough(form: str, tmp_path: Path) -> None:
    """A single turn, in a single arm without anything to compare it with."""
    document = make_document(tmp_path, talks=[make_talk("q", "One thing.")], arms=("no-cache",))

    assert render(form, document)


@pytest.mark.parametrize("form", sorted(set(TEXTS) - {"pr"}))
def test_many_cells_are_all_there(form: str, tmp_path: Path) -> None:
    """Sixty cells are each named; a comment shows the heaviest and counts the rest."""
    cells = [f"cell{number}" for number in range(60)]
    text = render(form, with_ratio(in_cells(make_document(tmp_path), *cells), 1.02))

    assert [cell_id for cell_id in cells if cell_id not in text] == []
