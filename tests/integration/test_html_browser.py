"""The HTML page in a real browser: charts have marks, filters work, and nothing goes wrong.

The page is loaded in a frame as wide as a screen or a phone. A script put at its end drives it and
posts what it saw; the frame's owner writes that down where the dumped document shows it.
"""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eaglebench.records.measured import MeasuredRun
from eaglebench.report.document import ReportDocument
from eaglebench.report.html import render_html
from eaglebench.report.row_tables import partings_table
from tests.html_documents import (
    ODD,
    make_document,
    make_run,
    make_swept,
    many_cells,
    renamed,
)

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DESKTOP, PHONE = 1280, 390
CHARTS = {"positions", "accepted", "questions", "matrix", "split"}
TIMEOUT_S = 120

EARLY = """<script>
window.problems = [];
addEventListener("error", (event) => problems.push(String(event.message)));
addEventListener("unhandledrejection", (event) => problems.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => problems.push(event.blockedURI));
console.error = (...words) => problems.push(words.join(" "));
</script>"""

LATE = """<script>
(() => {
  const marks = () => Object.fromEntries([...document.querySelectorAll("[data-chart]")].map((chart) => [
    chart.dataset.chart,
    chart.querySelectorAll(".bars .point path, .scatterlayer path.point, .heatmaplayer image").length,
  ]));
  const choose = (select, value) => {
    select.value = value;
    select.dispatchEvent(new Event("change", { bubbles: true }));
    select.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const filter = (name) => document.querySelector(`[data-filter="${name}"]`);
  const control = (name) => document.querySelector(`[data-controls="${name}"] select`);
  const visible = (name) =>
    [...document.querySelectorAll(`#${name}-table tbody tr`)].filter((row) => row.offsetHeight).length;
  const counts = () => ["findings", "runs", "partings"].map(visible);
  const type = (text) => {
    document.getElementById("words").value = text;
    document.getElementById("words").dispatchEvent(new Event("input", { bubbles: true }));
  };
  const remark = (name) => document.querySelector(`[data-remark="${name}"]`).textContent;
  const inked = () => getComputedStyle(document.querySelector(".chart .xtick text")).fill;
  const heights = () => [...document.querySelectorAll(".main-svg")].map((svg) => svg.clientHeight);
  const loads = () => performance.getEntriesByType("resource").map((entry) => entry.name);
  const wait = () => new Promise((done) => setTimeout(done, 300));
  const drive = async () => { DRIVER };
  const start = async () => {
    if (!DEMAND) await wait();
    else while (document.documentElement.dataset.charts !== "ready") await wait();
    let seen = null;
    try { seen = await drive(); } catch (error) { problems.push(String(error)); }
    parent.postMessage(JSON.stringify({ seen, problems }), "*");
  };
  addEventListener("load", start);
})();
</script>"""

FRAME = """<!DOCTYPE html><body><pre id="result"></pre><script>
addEventListener("message", (event) => { document.getElementById("result").textContent = event.data; });
</script><iframe src="page.html" width="WIDTH" height="2000"></iframe>"""

Drive = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> str:
    """The browser's command."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    return found


@pytest.fixture
def drive(browser: str, tmp_path: Path) -> Drive:
    """A function that loads a page, runs a script in it, and returns what the script returned."""

    def load(
        page: str,
        script: str,
        *,
        width: int = DESKTOP,
        flags: tuple[str, ...] = (),
        has_charts: bool = True,
    ) -> Any:
        late = LATE.replace("DRIVER", script).replace("DEMAND", "true" if has_charts else "false")
        page = page.replace("<head>", f"<head>{EARLY}", 1)
        start, end, rest = page.rpartition("</body>")
        (tmp_path / "page.html").write_text(start + late + end + rest, encoding="utf-8")
        frame = tmp_path / "frame.html"
        frame.write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", *flags]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,2200"]
        command += ["--virtual-time-budget=20000", "--dump-dom", frame.as_uri()]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
        result = re.search(r'<pre id="result">(.+?)</pre>', done.stdout, re.DOTALL)
        assert result is not None, done.stderr[-2000:]
        answer = json.loads(html.unescape(result[1]))
        assert answer["problems"] == []
        return answer["seen"]

    return load


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> MeasuredRun:
    """A run of three arms in two cells, with a near-tie and two faults."""
    return make_run(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def document(run: MeasuredRun) -> ReportDocument:
    """Its report."""
    return make_document(run)


def test_every_chart_has_marks(drive: Drive, document: ReportDocument) -> None:
    """Bars, dots and fields are drawn, without an error and without any request."""
    seen = drive(render_html(document), "return { marks: marks(), loads: loads() };")

    assert seen["marks"].keys() == CHARTS
    assert seen["marks"]["positions"] == 3 * 2
    assert seen["marks"]["accepted"] == 3 * 3
    assert seen["marks"]["questions"] == 2 * 7
    assert seen["marks"]["matrix"] == 1
    assert seen["marks"]["split"] == 6 * 4
    assert seen["loads"] == []


def test_draft_shapes_are_points_over_their_cost(drive: Drive, tmp_path: Path) -> None:
    """One point a shape and a ring on the fastest; without a sweep the chart is not there."""
    document = make_swept(tmp_path)
    seen = drive(render_html(document), "return { marks: marks().sweep };")

    assert len(document.sweeps[0].cells) == 3
    assert seen["marks"] == 3 + 1


def test_choices_change_the_charts(drive: Drive, document: ReportDocument) -> None:
    """Another arm, cell or measure is drawn at once."""
    seen = drive(
        render_html(document),
        """
        const before = remark("questions");
        choose(control("questions"), "1");
        choose(document.querySelector("#chart-choice select"), "1");
        choose(control("split"), "0");
        const texts = [];
        for (const key of ["al", "ch", "ts"]) {
          choose(control("matrix"), key);
          await wait();
          texts.push(document.querySelectorAll('[data-chart="matrix"] .heatmap-label').length);
        }
        return { before, after: remark("questions"), texts, marks: marks() };
        """,
    )

    assert seen["before"].startswith("0 of 7 questions differ")
    assert seen["after"].startswith("2 of 7 questions differ")
    assert seen["texts"] == [6, 4, 6]
    assert seen["marks"]["split"] == 2 * 4


def test_an_empty_choice_says_so(drive: Drive, run: MeasuredRun) -> None:
    """An arm without times has no bars; choosing all arms brings the others back."""
    blocks = tuple(block for block in run.blocks if block.arm != "radix")
    seen = drive(
        render_html(make_document(replace(run, blocks=blocks))),
        """
        const chart = document.querySelector('[data-chart="split"]');
        choose(control("split"), "0");
        const empty = chart.textContent;
        choose(control("split"), "");
        await wait();
        return { empty, marks: marks().split, isClean: !chart.textContent.includes("Nothing") };
        """,
    )

    assert seen == {"empty": "Nothing to draw.", "marks": 2 * 4, "isClean": True}


FILTERS = """
  const seen = { all: counts() };
  choose(filter("arm"), "unigram");
  seen.arm = counts();
  choose(filter("kind"), "draft-state");
  seen.kind = counts();
  seen.shown = document.getElementById("shown").value;
  document.getElementById("filters").reset();
  await wait();
  seen.reset = counts();
  choose(filter("verdict"), "REGRESSED");
  seen.verdict = counts();
  choose(filter("verdict"), "");
  type("TIE page1-");
  seen.words = counts();
  type("no such words");
  seen.nothing = counts();
  return seen;
"""


@pytest.mark.parametrize("has_charts", [True, False])
def test_filters_hide_rows(drive: Drive, document: ReportDocument, *, has_charts: bool) -> None:
    """Selects and words narrow the tables they can, with and without the chart library."""
    page = render_html(document)
    if not has_charts:
        page = re.sub(r'(id="chart-library">).*?(</script>)', r"\1\2", page, flags=re.DOTALL)
        assert len(page) < 200_000
    seen = drive(page, FILTERS, has_charts=has_charts)
    partings = partings_table(document.rows).texts
    everything = [2, len(document.rows), len(partings)]
    unigram = [row for row in partings if row[3] == "unigram"]
    drafts = [row for row in unigram if row[6] == "draft-state"]

    assert seen["all"] == seen["reset"] == everything
    assert seen["arm"] == [1, 2, len(unigram)]
    assert seen["kind"] == [1, 2, len(drafts)]
    assert f"Differing turns: {len(drafts)} of {len(partings)}" in seen["shown"]
    assert seen["verdict"] == [1, *everything[1:]]
    assert seen["words"] == [0, 0, len([r for r in partings if r[0] == "tie" and "page1-" in r[2]])]
    assert seen["nothing"] == [0, 0, 0]


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_charts_follow_the_theme(drive: Drive, document: ReportDocument, scheme: str) -> None:
    """The page starts as the system says, and the button changes page and charts."""
    number = {"dark": 0, "light": 1}[scheme]
    seen = drive(
        render_html(document),
        """
        const ink = () => [inked(), getComputedStyle(document.documentElement).backgroundColor];
        const before = ink();
        document.getElementById("theme").click();
        await wait();
        return { before, after: ink(), marks: marks() };
        """,
        flags=(f"--blink-settings=preferredColorScheme={number}",),
    )
    back = {"dark": "rgb(20, 23, 28)", "light": "rgb(255, 255, 255)"}

    assert seen["before"][1] == back[scheme]
    assert seen["after"][1] == back["light" if scheme == "dark" else "dark"]
    assert seen["before"][0] != seen["after"][0]
    assert all(seen["marks"].values())


def test_the_page_fits_a_phone(drive: Drive, document: ReportDocument) -> None:
    """Nothing but the tables' own boxes is wider than a phone."""
    seen = drive(
        render_html(document),
        """
        const root = document.documentElement;
        const widths = [...document.querySelectorAll(".main-svg")].map((svg) => svg.clientWidth);
        return { inner: innerWidth, whole: root.scrollWidth, widest: Math.max(...widths) };
        """,
        width=PHONE,
    )

    assert seen["inner"] == PHONE
    assert seen["whole"] <= PHONE
    assert seen["widest"] <= PHONE


def test_charts_fit_paper(drive: Drive, run: MeasuredRun) -> None:
    """In front of printing, tall charts shrink to a page; afterwards they are as before."""
    seen = drive(
        render_html(make_document(many_cells(run, 60))),
        """
        const before = Math.max(...heights());
        dispatchEvent(new Event("beforeprint"));
        const printed = Math.max(...heights());
        dispatchEvent(new Event("afterprint"));
        return { before, printed, after: Math.max(...heights()) };
        """,
    )

    assert seen["before"] == seen["after"] > 1000
    assert seen["printed"] <= 600


def test_odd_names_are_only_text(drive: Drive, run: MeasuredRun) -> None:
    """Names full of markup make neither an element nor a script, in tables and in charts."""
    seen = drive(
        render_html(make_document(renamed(run, ODD))),
        """
        const name = document.querySelector('[data-chart="matrix"] .ytick text').textContent;
        return { marks: marks(), images: document.querySelectorAll("img").length, name };
        """,
    )

    assert all(seen["marks"].values())
    assert seen["images"] == 0
    assert seen["name"].startswith("</script><img src=x onerror=alert(1)>&\"'ü{{")
