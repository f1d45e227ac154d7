"""Texts made safe."""

from operator import itemgetter
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eaglebench.report.escaping import markdown_text, one_line, xml_text
from eaglebench.report.markdown import pipe_table
from eaglebench.report.table import Column, make_table

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text_with-marks +- 1.5% -> x", "plain text_with-marks +- 1.5% -> x"),
        ("a|b", "a\\|b"),
        ("a\\|b", "a\\\\\\|b"),
        ("two\r\nlines", "two<br>lines"),
        ("<b>&amp;", "&lt;b>&amp;amp;"),
        ("*", "\\*"),
        ("\x00", "\ufffd"),
        ("", ""),
    ],
)
def test_markdown_shows_the_text_as_it_is(text: str, shown: str) -> None:
    """Only what Markdown would read as a mark is changed."""
    assert markdown_text(text) == shown


@given(ANY_TEXT)
def test_any_text_is_one_line(text: str) -> None:
    """It can be stored as UTF-8, too."""
    for shown in (one_line(text), markdown_text(text)):
        assert len(shown.splitlines()) <= 1
        assert shown.encode().decode() == shown


@given(ANY_TEXT)
def test_any_text_fits_into_xml(text: str) -> None:
    """A parser reads it back; it makes one line end of several kinds, and that is all."""
    element = ET.Element("x")
    element.text = xml_text(text)
    (read,) = [ET.fromstring(ET.tostring(element)).text or ""]

    assert read.splitlines() == (element.text or "").splitlines()


@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT), min_size=1, max_size=4))
def test_any_texts_make_a_table(rows: list[tuple[str, str]]) -> None:
    """As many lines as rows, with as many borders as the head."""
    columns = (Column("name", itemgetter(0)), Column("value", itemgetter(1), is_right=True))
    lines = pipe_table(make_table(columns, rows)).splitlines()

    assert len(lines) == 2 + len(rows)
    for line in lines:
        borders = line.replace("\\\\", "").replace("\\|", "").count("|")
        assert borders == 3
