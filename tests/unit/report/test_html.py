"""The HTML page as text: what is on it, in which order, how large, and that nothing breaks out."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from eaglebench.contracts.measured import MeasuredRun
from eaglebench.contracts.observation import VerifyStep
from eaglebench.contracts.verdict import Finding, Judgement
from eaglebench.report.charts import chart_data, short_names
from eaglebench.report.document import ReportDocument
from eaglebench.report.html import render_html
from eaglebench.report.html_tables import (
    HtmlTable,
    facts_table,
    findings_table,
    partings_table,
    runs_table,
)
from eaglebench.report.paste import paste_lines
from eaglebench.report.rows import Row, make_rows
from eaglebench.stats.pairing import Tau
from eaglebench.stats.throughput import RatioEstimate
from eaglebench.store.decode import measured_run
from tests.fakes import NOISE, Plant, ScriptedRuntime
from tests.sessions import make_cell, make_folder, make_session, make_talk, make_talks

TAU = Tau(target=10 * NOISE, draft=10 * NOISE)
ARMS = ["radix", "unigram", "no-cache"]
PLANTS = {
    "radix": [Plant(word="close", gap=1e-5)],
    "unigram": [
        Plant(word="wrong draft", gap=1.0),
        Plant(word="wrong target", side="target", gap=1.0),
    ],
}
ODD = "</script><img src=x onerror=alert(1)>&\"'ü{{ 7 * 7 }}"
MAX_PAGE_BYTES = 7_000_000
MAX_DATA_BYTES = 1_000_000


def make_run(root: Path, num_questions: int = 4) -> MeasuredRun:
    """A run of three arms in two cells, with a near-tie and two faults."""
    talks = [
        *make_talks(num_questions),
        make_talk("tie", "A close call."),
        make_talk("draft", "A wrong draft comes."),
        make_talk("target", "A wrong target comes."),
    ]
    folder = make_folder(root)
    cells = [make_cell(page_size=size) for size in (1, 16)]
    make_session(ScriptedRuntime(PLANTS), folder, talks, cells=cells, arms=ARMS).run()
    environment = {
        "exact": {"torch": "2.13.0", "num_threads": 1},
        "timing": {"cpu": "a processor"},
        "info": {"host": "somewhere"},
    }
    return replace(
        measured_run(folder), environment=environment, git={"sha": "abc123", "dirty": True}
    )


def make_judgement(*findings: Finding) -> Judgement:
    """A pass, a regression with an interval, and more."""
    passed = Finding(
        cell_id="cell", arm="radix", metric="al", verdict="PASS", reason="all turns identical"
    )
    worse = Finding(
        cell_id="cell",
        arm="unigram",
        metric="throughput",
        verdict="REGRESSED",
        reason="slower than allowed",
        change=-0.0312,
        half_width=0.0123,
        mde=0.0201,
        tier="matched",
        questions=("draft", "target"),
    )
    return Judgement(
        candidate="candidate",
        baseline="release-1",
        findings=(passed, worse, *findings),
        notes=("another machine",),
    )


def make_document(run: MeasuredRun, judgement: Judgement | None = None) -> ReportDocument:
    """A document with the rows of a run."""
    return ReportDocument(
        run=run,
        rows=tuple(make_rows(run.turns, run.blocks, TAU)),
        judgement=judgement or make_judgement(),
        notes=("radix never hit",),
    )


def many_cells(run: MeasuredRun, count: int) -> MeasuredRun:
    """The first cell's turns and blocks, again and again under other names."""
    first = run.turns[0].cell_id
    names = [f"page{n}-chunk{n % 3}-topk1" for n in range(count)]
    turns = [turn for turn in run.turns if turn.cell_id == first]
    blocks = [block for block in run.blocks if block.cell_id == first]
    return replace(
        run,
        turns=tuple(replace(turn, cell_id=name) for name in names for turn in turns),
        blocks=tuple(replace(block, cell_id=name) for name in names for block in blocks),
    )


def renamed(run: MeasuredRun, name: str) -> MeasuredRun:
    """Every cell and question with a name put in front."""
    return replace(
        run,
        run_id=name,
        suite={"name": name},
        config={name: name},
        models={"target_id": name, "dtype": name},
        environment={"exact": {name: name}, "timing": {}, "info": {}},
        turns=tuple(
            replace(t, cell_id=name + t.cell_id, question_id=name + t.question_id)
            for t in run.turns
        ),
        blocks=tuple(replace(b, cell_id=name + b.cell_id) for b in run.blocks),
    )


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
        '<table id="environment-exact"',
        '<table id="environment-timing"',
        '<table id="environment-info"',
        '<table id="model-facts"',
        '<table id="options"',
        '<table id="git"',
        'id="notes"',
    ]
    places = [page.index(mark) for mark in marks]

    assert places == sorted(places)


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
        "-3.12% ± 1.23%",
        "2.01%",
        "matched",
        "draft, target",
    ]
    assert passed[5:] == ["-"] * 4


def test_long_lists_of_questions_are_counted() -> None:
    """Twelve are named, the others are a number."""
    names = tuple(f"q{n}" for n in range(30))
    finding = Finding(
        cell_id="*", arm="*", metric="*", verdict="FAILED", reason="all", questions=names
    )
    (row,) = findings_table(Judgement(candidate="a", baseline="b", findings=(finding,))).rows

    assert row[-1].endswith("q11 and 18 more")


def test_lines_to_paste_are_unchanged(page: str, run: MeasuredRun) -> None:
    """The block holds exactly the lines of the terminal."""
    found = re.search(r'<pre class="paste"[^>]*>(.*?)</pre>', page, re.DOTALL)

    assert found is not None
    assert found[1].splitlines() == paste_lines(make_document(run).rows)


def test_rows_show_their_numbers(run: MeasuredRun) -> None:
    """Every cell and arm has its row; `no-cache` is not compared with itself."""
    rows = make_document(run).rows
    table = runs_table(rows)

    assert [line[:2] for line in table.rows] == [(row.cell_id, row.arm) for row in rows]
    for row, line in zip(rows, table.rows, strict=True):
        assert line[3] == f"{row.counts.acceptance_length:.3f}"
        assert line[6:12] == (
            str(row.counts.verify_steps),
            str(row.counts.cached_tokens),
            str(row.counts.prefill_tokens_computed),
            str(row.counts.pages_allocated),
            str(row.counts.alloc_calls),
            str(row.counts.evictions),
        )
        assert (line[12:] == ("-", "-")) == (row.arm == "no-cache")


def test_missing_numbers_are_dashes(run: MeasuredRun) -> None:
    """A row without a block has no speed, and none is made up."""
    bare = replace(run, blocks=())
    document = make_document(bare)
    line = runs_table(document.rows).rows[0]

    assert (line[5], line[13]) == ("-", "-")
    assert chart_data(bare.turns, document.rows)["splits"] == []


def test_repeated_passes_show_their_interval(run: MeasuredRun) -> None:
    """The estimate over passes stands with its half-width."""
    row = make_document(run).rows[0]
    ratio = RatioEstimate(log_ratio=0.0, half_width=0.012, sd=0.01, pairs=8, drift=None)
    row = replace(row, differences=(replace(row.differences[0], ratio=ratio),))

    assert runs_table([row]).rows[0][13] == "+0.0% ± 1.2%"


def test_differing_turns_are_listed_gravest_first(run: MeasuredRun) -> None:
    """A fault with its common beginning, then the near-tie; identical turns are not listed."""
    table = partings_table(make_document(run).rows)
    kinds = [row[6] for row in table.rows]
    fault = table.rows[0]

    assert set(kinds) == {"target-state", "draft-state", "near-tie"}
    assert kinds == sorted(kinds, key=["target-state", "draft-state", "near-tie"].index)
    assert fault[:2] == ("target", "1")
    assert fault[3:8] == ("unigram", "no-cache", "diverged", "target-state", "target")
    assert int(fault[11]) > 0
    assert float(fault[12]) >= 1
    assert re.fullmatch(r"[+-]\d+", fault[14])


def test_another_number_of_drafts_has_no_gap(run: MeasuredRun) -> None:
    """Where one arm drafted less there are no two logits to compare, and the table says so."""
    turns = tuple(
        replace(t, steps=(_cut(t.steps[0]), *t.steps[1:])) if t.arm == "radix" else t
        for t in run.turns
        if t.question_id == "tie"
    )
    table = partings_table(make_rows(turns, (), TAU))

    assert "other draft length" in {row[10] for row in table.rows}


def _cut(step: VerifyStep) -> VerifyStep:
    return replace(
        step,
        drafted_ids=step.drafted_ids[:1],
        draft_gaps=step.draft_gaps[:1],
        target_ids=step.target_ids[:2],
        accepted=0,
    )


def test_facts_are_flat_and_plain() -> None:
    """Nested values get dotted names; nothing, yes, no and lists are words."""
    table = facts_table(
        "x", "x", {"b": {"c": {"d": [1, 2]}}, "a": None, "e": True, "f": [], "g": {}}
    )

    assert table.rows == (("a", "-"), ("b.c.d", "1, 2"), ("e", "yes"), ("f", "-"), ("g", "-"))


def test_notes_of_both_kinds_are_shown(parsed: PageText) -> None:
    """Those of the run and those of the judgement."""
    assert "radix never hit" in parsed.text
    assert "another machine" in parsed.text
    assert "Notes (2)" in parsed.text


def test_charts_hold_the_counts_of_the_first_pass(run: MeasuredRun) -> None:
    """Histogram and questions sum to the pooled counters, prepared and repeated turns left out."""
    again = tuple(replace(turn, round=1) for turn in run.turns)
    donor = replace(run.turns[0], is_measured=False, turn=7)
    document = make_document(run)
    data = chart_data((*run.turns, *again, donor), document.rows)

    for row, drawn in zip(document.rows, data["rows"], strict=True):
        assert sum(drawn["h"]) == row.counts.verify_steps
        assert sum(n * count for n, count in enumerate(drawn["h"])) == row.counts.accepted
        totals = data["asked"][drawn["c"]]["y"][drawn["a"]]
        assert sum(totals[::2]) == row.counts.emitted
        assert sum(totals[1::2]) == row.counts.verify_steps


def test_differing_questions_are_drawn_first(run: MeasuredRun) -> None:
    """A cut of the questions takes those that are the same in all arms."""
    data = chart_data(run.turns, make_document(run).rows)
    names = [data["questions"][number] for number in data["asked"][0]["q"]]

    assert set(names[:2]) <= {"target", "draft", "tie"}
    assert set(names) == {turn.question_id for turn in run.turns}


def test_too_many_questions_are_cut_and_counted(
    run: MeasuredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data names how many questions it left out."""
    monkeypatch.setattr("eaglebench.report.charts.MAX_DOTS", 12)
    data = chart_data(run.turns, make_document(run).rows)

    assert [len(cell["q"]) for cell in data["asked"]] == [2, 2]
    assert data["left_out"]["questions"] == 10


@pytest.mark.parametrize("make_table", [runs_table, partings_table])
def test_long_tables_are_cut_and_counted(
    make_table: Any, run: MeasuredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table says how many rows it left out."""
    rows = make_document(run).rows
    whole: HtmlTable = make_table(rows)
    monkeypatch.setattr("eaglebench.report.html_tables.MAX_ROWS", 2)
    cut: HtmlTable = make_table(rows)
    shown = PageText(render_html(make_document(run))).text

    assert cut.rows == whole.rows[:2]
    assert cut.left_out == len(whole.rows) - 2
    assert f"{cut.left_out} more rows are left out" in shown


@pytest.mark.parametrize(
    ("cells", "short", "shared"),
    [
        (["page1-off-topk1", "page4-off-topk1"], ["page1", "page4"], "off-topk1"),
        (["page1-off"], ["page1-off"], ""),
        (["page1-off", "odd"], ["page1-off", "odd"], ""),
        (["a-b", "a-b"], ["a-b", "a-b"], ""),
        ([], [], ""),
    ],
)
def test_shared_parts_of_names_are_said_once(
    cells: Sequence[str], short: list[str], shared: str
) -> None:
    """Only what differs between cells is left of their names."""
    assert short_names(cells) == (short, shared)


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
    assert parsed.tables["options"][1] == [ODD, ODD]


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
    """Sixty cells of three arms take less than 7 MB, of which less than 1 MB are data."""
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


def test_a_failed_turn_is_counted_in_its_row(run: MeasuredRun) -> None:
    """The row says how many turns failed, and the differing turns name them."""
    turns = tuple(
        replace(t, error="too long") if (t.question_id, t.arm) == ("tie", "radix") else t
        for t in run.turns
    )
    rows: list[Row] = make_rows(turns, run.blocks, TAU)

    assert "(1 turns failed)" in runs_table(rows).rows[0][2]
    assert partings_table(rows).rows[-1][6] != "identical"
    assert "failed" in {row[6] for row in partings_table(rows).rows}
