"""JUnit's XML for continuous integration: one test suite a cell, one test case a finding."""

import io
from collections.abc import Sequence
from typing import Any

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from eaglebench.records.doubt import EVERYWHERE
from eaglebench.records.verdict import Finding, Verdict
from eaglebench.report.document import ReportDocument
from eaglebench.report.escaping import one_line, xml_text
from eaglebench.report.phrases import fact_text
from eaglebench.report.rows import by_cell

OUTCOMES: dict[Verdict, type[Any]] = {
    "REGRESSED": Failure,
    "FAILED": Failure,
    "NOT_COMPARABLE": Error,
    "INCONCLUSIVE": Skipped,
}
"""A verdict that is missing here is a passed test."""


def render_junit(document: ReportDocument) -> str:
    """The findings as XML 1.0; times are those of the measured blocks."""
    cells = by_cell(document.judgement.findings or (_nothing(document),))
    root = JUnitXml("eaglebench")
    seconds = {cell_id: _seconds(document, cell_id) for cell_id in cells}
    for cell_id, findings in cells.items():
        # `add_testsuite` would merge cells whose names become equal in XML.
        root.append(_suite(document, cell_id, findings))
    root.update_statistics()
    for suite, spent in zip(root, seconds.values(), strict=True):
        suite.time = spent
    root.time = sum(seconds.values())
    stream = io.BytesIO()
    root.write(stream, pretty=True)
    return stream.getvalue().decode()


def _nothing(document: ReportDocument) -> Finding:
    """An empty suite would look like a pass."""
    return Finding(
        cell_id=EVERYWHERE,
        arm=EVERYWHERE,
        metric=EVERYWHERE,
        verdict=document.judgement.verdict,
        reason="nothing was judged",
    )


def _suite(document: ReportDocument, cell_id: str, findings: Sequence[Finding]) -> Any:
    suite = TestSuite(_attribute(cell_id))
    if document.run.started:
        suite.timestamp = _attribute(document.run.started)
    facts = {
        "run": document.run.run_id,
        "suite": fact_text(document.run.suite.get("name")),
        "candidate": document.judgement.candidate,
        "baseline": document.judgement.baseline,
        "verdict": document.judgement.verdict,
    }
    for name, value in facts.items():
        suite.add_property(name, _attribute(value))
    for finding in findings:
        suite.append(_case(finding))
    return suite


def _case(finding: Finding) -> Any:
    case = TestCase(name=_attribute(finding.metric), classname=_attribute(finding.arm))
    outcome = OUTCOMES.get(finding.verdict)
    if outcome is None:
        case.system_out = xml_text(f"{finding.verdict}: {finding.reason}")
        return case
    result = outcome(_attribute(finding.reason), finding.verdict)
    result.text = xml_text("\n".join((finding.reason, *finding.questions)))
    case.result = result
    return case


def _seconds(document: ReportDocument, cell_id: str) -> float:
    """Timed seconds of a cell's arms; 0 where none was timed."""
    rows = [row for row in document.rows if row.cell_id == cell_id]
    return round(sum(row.speed.wall_s for row in rows if row.speed), 3)


def _attribute(value: str) -> str:
    return xml_text(one_line(value))
