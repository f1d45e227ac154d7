"""Findings as test cases, read back by a parser."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from junitparser import JUnitXml

from eaglebench.records.verdict import Finding, Verdict
from eaglebench.report.document import ReportDocument
from eaglebench.report.junit import render_junit
from tests.unit.report.toy_documents import (
    CELL,
    ODD_NAME,
    in_cells,
    make_document,
    with_findings,
    without_speed,
)


def read(document: ReportDocument) -> Any:
    """The rendered suites."""
    return JUnitXml.fromstring(render_junit(document).encode())


def make_finding(verdict: Verdict, **fields: Any) -> Finding:
    """A finding with this verdict."""
    values = {"cell_id": CELL, "arm": "radix", "metric": "al", "reason": "because", **fields}
    return Finding(verdict=verdict, **values)


@pytest.mark.parametrize(
    ("verdict", "tag"),
    [
        ("REGRESSED", "failure"),
        ("FAILED", "failure"),
        ("NOT_COMPARABLE", "error"),
        ("INCONCLUSIVE", "skipped"),
        ("IMPROVED", "system-out"),
        ("PASS", "system-out"),
    ],
)
def test_verdict_decides_the_outcome(verdict: Verdict, tag: str, tmp_path: Path) -> None:
    """Only PASS and IMPROVED are passed tests; each says why."""
    document = with_findings(make_document(tmp_path), make_finding(verdict))
    (case,) = ET.fromstring(render_junit(document)).iter("testcase")
    (child,) = case

    assert (case.get("classname"), case.get("name")) == ("radix", "al")
    assert child.tag == tag
    assert "because" in f"{child.text}"


def test_counts_are_those_of_the_findings(tmp_path: Path) -> None:
    """One suite a cell, sums at the root."""
    verdicts: list[Verdict] = ["REGRESSED", "PASS", "INCONCLUSIVE", "NOT_COMPARABLE", "PASS"]
    findings = [make_finding(v, metric=f"m{n}") for n, v in enumerate(verdicts)]
    root = read(in_cells(with_findings(make_document(tmp_path), *findings), "one", "two"))

    assert [suite.name for suite in root] == ["one", "two"]
    assert (root.tests, root.failures, root.errors, root.skipped) == (10, 2, 2, 2)
    for suite in root:
        assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (5, 1, 1, 1)


def test_failure_names_its_questions(tmp_path: Path) -> None:
    """All of them, one a line."""
    finding = make_finding("REGRESSED", questions=tuple(f"q{n}" for n in range(80)))
    (suite,) = read(with_findings(make_document(tmp_path), finding))
    (result,) = next(iter(suite)).result

    assert result.type == "REGRESSED"
    assert result.message == "because"
    assert result.text.splitlines() == ["because", *finding.questions]


def test_suites_say_which_run_they_are_of(tmp_path: Path) -> None:
    """Run, suite and verdict are properties; the time is that of the timed blocks."""
    document = make_document(tmp_path)
    (suite,) = read(document)
    properties = {entry.name: entry.value for entry in suite.properties()}

    assert properties == {
        "run": document.run.run_id,
        "suite": "toy",
        "candidate": document.run.run_id,
        "baseline": "no-cache",
        "verdict": "PASS",
    }
    assert suite.time == sum(row.speed.wall_s for row in document.rows if row.speed)


def test_times_are_optional(tmp_path: Path) -> None:
    """Without timed blocks there are no seconds to report."""
    (suite,) = read(without_speed(make_document(tmp_path)))

    assert suite.time == 0


def test_nothing_judged_is_an_error(tmp_path: Path) -> None:
    """A file without a test would look like a pass."""
    root = read(with_findings(make_document(tmp_path)))

    assert (root.tests, root.errors) == (1, 1)


def test_forbidden_characters_are_replaced(tmp_path: Path) -> None:
    """The file can be read back; what XML has no way to write became one character."""
    odd = f"{ODD_NAME}\ufffe\ud800"
    finding = make_finding(
        "REGRESSED", cell_id=odd, arm=odd, metric=odd, reason=odd, questions=(odd,)
    )
    (suite,) = read(with_findings(make_document(tmp_path), finding))
    (case,) = suite

    assert suite.name == case.name == case.classname == "a|b <x> `ü` \ufffd*\ufffd\ufffd"
    assert case.result[0].text.endswith("a|b\n<x> `ü` \ufffd*\ufffd\ufffd")


def test_cells_with_names_that_become_equal_stay_apart(tmp_path: Path) -> None:
    """Two control characters are written alike, but are two suites."""
    root = read(in_cells(make_document(tmp_path), "a\x01", "a\x02"))

    assert [suite.name for suite in root] == ["a\ufffd", "a\ufffd"]
