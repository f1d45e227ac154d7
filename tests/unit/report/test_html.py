"""The HTML page as text: what is on it, in which order, how large, and that nothing breaks out."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from eaglebench.records.measured import MeasuredRun
from eaglebench.records.verdict import Finding, Judgement
from eaglebench.report.document import ReportDocument
from eaglebench.report.html import render_html
from eaglebench.report.phrases import paste_lines
from tests.html_documents import ARMS, ODD, make_document, make_run, make_swept, many_cells, renamed

MAX_PAGE_BYTES = 2_000_000
MAX_DATA_BYTES = 1_000_000


class PageText(HTMLParser):
    """What a browser makes of the page.

    Attributes:
        tags: every element with its attributes, in order.
        tables: the texts of every table's rows, heads first, by the table's id.
        texts: what stands in scripts and styles, and everything else under "".
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "": []}
        self._table = ""
        self._tag = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the element; a table's rows are gathered under its id."""
        found = {name: value or "" for name, value in attrs}
        self.tags.append((tag, found))
        self._tag = tag
        if tag == "table":
            self._table = found["id"]
            self.tables[self._table] = []
        elif tag == "tr":
            self.tables[self._table].append([])
        elif tag in {"th", "td"}:
            self.tables[self._table][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        """Text after an element belongs to none."""
        self._tag = "" if tag in {"script", "style", "caption", "td", "th"} else self._tag

    def handle_data(self, data: str) -> None:
        """Put the text where it belongs."""
        self.texts[self._tag if self._tag in {"script", "style"} else ""].append(data)
        rows = self.tables.get(self._table)
        if self._tag in {"th", "td", "span"} and rows and rows[-1]:
            rows[-1][-1] += data

    @property
    def text(self) -> str:
        """Everything a reader reads."""
        return "".join(self.texts[""])

    def attributes(self, tag: str) -> list[dict[str, str]]:
        """Attributes of every element of a kind."""
        return [found for name, found in self.tags if name == tag]


def data_of(page: str) -> dict[str, Any]:
    """The JSON that the charts are drawn from."""
    found = re.search(r'<script type="application/json" id="chart-data">(.*?)</script>', page)
    assert found is not None
    values: dict[str, Any] = json.loads(found[1])
    return values


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> MeasuredRun:
    """One scripted run for all tests: they only read it."""
    return make_run(tmp_path_factory.mktemp("html"))


@pytest.fixture(scope="module")
def page(run: MeasuredRun) -> str:
    """Its page."""
    return render_html(make_document(run))


@pytest.fixture(scope="module")
def parsed(page: str) -> PageText:
    """The page as a browser sees it."""
    return PageText(page)


def test_the_page_needs_nothing_from_the_network(parsed: PageText) -> None:
    """No element and no style loads anything, and the page forbids itself to."""
    loads = [
        value
        for _, found in parsed.tags
        for name, value in found.items()
        if name in {"src", "href", "srcset", "action", "poster", "data"}
    ]

    assert all(value.startswith("#") for value in loads)
    assert "url(" not in "".join(parsed.texts["style"])
    assert "@import" not in "".join(parsed.texts["style"])
    assert not [tag for tag, _ in parsed.tags if tag in {"link", "iframe", "img", "object"}]
    (policy,) = [m["content"] for m in parsed.attributes("meta") if "http-equiv" in m]
    assert policy.startswith("default-src 'none';")


def test_the_sections_stand_in_order(page: str) -> None:
    """Title, verdict, findings, lines to paste, rows, charts, differing turns, environment."""
    marks = [
        "<h1>",
        '<strong class="verdict REGRESSED">REGRESSED</strong>',
        '<table id="findings-table"',
        '<pre class="paste"',
        '<table id="runs-table"',
        'data-chart="positions"',
        'data-chart="accepted"',
        'data-chart="questions"',
        'data-chart="matrix"',
        'data-chart="split"',
        '<table id="partings-table"',
        '<table id="environment-exact-table"',
        '<table id="environment-timing-table"',
        '<table id="environment-info-table"',
        '<table id="model-facts-table"',
        '<table id="options-table"',
        '<table id="git-table"',
        'id="notes"',
    ]
    places = [page.index(mark) for mark in marks]

    assert places == sorted(places)


def test_the_wanted_columns_come_first(parsed: PageText) -> None:
    """What a run is looked at for stands in front of the counters."""
    heads = parsed.tables["runs-table"][0]

    assert heads[3:8] == [
        *("acceptance length", "length against no-cache", "token/s"),
        *("throughput against no-cache", "by position"),
    ]
    assert "alloc calls" in heads[8:]


def test_a_sweep_is_answered_above_the_findings(tmp_path: Path) -> None:
    """The fastest shape is named before any table, with how surely."""
    page = render_html(make_swept(tmp_path))
    answer = page.index('class="answer"')

    assert answer < page.index('id="findings"')
    assert "fastest in this one pass is" in page[answer : answer + 400]
    assert "no interval" in page[answer : answer + 600]


def test_a_turn_that_parts_alike_stands_once(parsed: PageText) -> None:
    """One row a cell, arm, question, turn and kind of parting, naming every arm it parts from."""
    rows = [(*row[:4], *row[5:]) for row in parsed.tables["partings-table"][1:]]

    assert len(set(rows)) == len(rows)
    assert any(row[4] == "no-cache, radix" for row in parsed.tables["partings-table"])


def test_the_title_says_what_ran(parsed: PageText, run: MeasuredRun) -> None:
    """Suite, target, dtype, run and verdict are in the head of the page."""
    head = re.sub(r"\s+", " ", parsed.text)

    assert "toy on toy in float32" in head
    assert run.run_id in head
    assert "REGRESSED - toy, toy - eaglebench" in head
    assert "candidate against release-1: 1 REGRESSED, 1 PASS" in head


def test_heaviest_finding_comes_first(parsed: PageText) -> None:
    """With its change, half-width, smallest effect, tier and questions; what is missing is a dash."""
    _, worse, passed = parsed.tables["findings-table"]

    assert worse == [
        "REGRESSED",
        "cell",
        "unigram",
        "throughput",
        "slower than allowed",
        "-3.12% +- 1.23%",
        "2.01%",
        "matched",
        "draft, target",
    ]
    assert passed[5:] == ["-"] * 4


def test_lines_to_paste_are_unchanged(page: str, run: MeasuredRun) -> None:
    """The block holds exactly the lines of the terminal."""
    found = re.search(r'<pre class="paste"[^>]*>(.*?)</pre>', page, re.DOTALL)

    assert found is not None
    assert found[1].splitlines() == paste_lines(make_document(run).rows)


def test_notes_of_both_kinds_are_shown(parsed: PageText) -> None:
    """Those of the run and those of the judgement."""
    assert "radix never hit" in parsed.text
    assert "another machine" in parsed.text
    assert "Notes (2)" in parsed.text


def test_long_tables_are_cut_and_counted(
    run: MeasuredRun, parsed: PageText, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table says how many rows it left out."""
    monkeypatch.setattr("eaglebench.report.html.MAX_ROWS", 2)
    cut = PageText(render_html(make_document(run)))

    for name in ("runs-table", "partings-table"):
        whole = parsed.tables[name]
        assert cut.tables[name] == whole[:3]
        assert f"{len(whole) - 3} more rows are left out" in cut.text


def test_odd_names_cannot_break_out(run: MeasuredRun) -> None:
    """Markup in any name stays text: no element, no script and no template comes of it."""
    odd = renamed(run, ODD)
    finding = Finding(
        cell_id=ODD, arm=ODD, metric=ODD, verdict="PASS", reason=ODD, tier=ODD, questions=(ODD,)
    )
    judgement = Judgement(candidate=ODD, baseline=ODD, findings=(finding,), notes=(ODD,))
    document = replace(make_document(odd, judgement), notes=(ODD,))
    page = render_html(document)
    parsed, plain = PageText(page), PageText(render_html(make_document(run)))

    assert len(parsed.attributes("script")) == len(plain.attributes("script"))
    assert not [tag for tag, _ in parsed.tags if tag == "img"]
    assert not [name for _, found in parsed.tags for name in found if name.startswith("on")]
    assert parsed.tables["findings-table"][1][1] == ODD
    assert data_of(page)["cells"][0].startswith(ODD)
    assert parsed.tables["options-table"][1] == [ODD, ODD]


def test_tables_can_be_read_aloud(parsed: PageText) -> None:
    """Tables have a caption and scopes, charts a label, controls a name."""
    tables = len(parsed.attributes("table"))

    assert len(parsed.attributes("caption")) == tables == len(parsed.tables)
    assert {cell["scope"] for cell in parsed.attributes("th")} == {"col", "row"}
    charts = [found for found in parsed.attributes("div") if "data-chart" in found]
    assert len(charts) == 5
    assert all(found["role"] == "img" and found["aria-label"] for found in charts)
    assert parsed.attributes("html")[0]["lang"] == "en"


def test_the_page_fits_phones_and_paper(page: str, parsed: PageText) -> None:
    """It has a viewport, both colour schemes and a print style."""
    names = {found.get("name") for found in parsed.attributes("meta")}

    assert "viewport" in names
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_filters_offer_what_is_there(parsed: PageText) -> None:
    """Arms, verdicts and classes of this run, and nothing else."""
    options = "".join(parsed.texts[""])

    assert {found.get("data-filter") for found in parsed.attributes("select")} == {
        "arm",
        "verdict",
        "kind",
    }
    assert "IMPROVED" not in options
    assert "diverged-prompt" not in options


def test_sixty_cells_stay_small(run: MeasuredRun) -> None:
    """Sixty cells of three arms take less than 2 MB, of which less than 1 MB are data."""
    page = render_html(make_document(many_cells(run, 60)))
    data = re.search(r'id="chart-data">(.*?)</script>', page)

    assert data is not None
    assert len(page.encode()) < MAX_PAGE_BYTES
    assert len(data[1].encode()) < MAX_DATA_BYTES
    assert len(PageText(page).tables["runs-table"]) == 1 + 60 * len(ARMS)


def test_an_empty_run_has_a_page(run: MeasuredRun) -> None:
    """Without turns, rows and findings the page says so, and the verdict is no pass."""
    empty = replace(run, turns=(), blocks=(), suite={}, models={}, environment={}, git=None, tau={})
    judgement = Judgement(candidate="a", baseline="b", findings=())
    page = render_html(ReportDocument(run=empty, rows=(), judgement=judgement, notes=()))
    parsed = PageText(page)

    assert '<strong class="verdict NOT_COMPARABLE">' in page
    assert "Nothing was compared." in parsed.text
    assert "Nothing was measured." in parsed.text


def test_two_pages_of_one_document_are_the_same(run: MeasuredRun, page: str) -> None:
    """Nothing of the time or the machine of rendering is on the page."""
    assert render_html(make_document(run)) == page
