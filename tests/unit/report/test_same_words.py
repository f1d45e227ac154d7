"""What every format for people says of one difference, spelled the same."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from eaglebench.report.document import ReportDocument
from eaglebench.report.html import render_html
from eaglebench.report.markdown import render_markdown
from eaglebench.report.pull_request import render_pull_request
from eaglebench.report.terminal import render_run
from tests.unit.report.toy_documents import make_document, with_rows

TINY = -0.00001


def in_terminal(document: ReportDocument) -> str:
    """The run's tables as a wide terminal shows them."""
    stream = io.StringIO()
    render_run(document, Console(file=stream, width=140), title="toy")
    return stream.getvalue()


@pytest.mark.parametrize("render", [in_terminal, render_markdown, render_pull_request, render_html])
def test_a_tiny_loss_is_no_negative_zero(
    tmp_path: Path, render: Callable[[ReportDocument], str]
) -> None:
    """A change of -0.001% read "-0.00%" in two formats and "+0.00%" in the other two."""
    document = make_document(tmp_path)
    rows = [
        replace(
            row,
            differences=tuple(
                replace(d, acceptance=TINY, throughput=TINY, log_ratio=(TINY, TINY, TINY))
                for d in row.differences
            ),
        )
        for row in document.rows
    ]
    text = render(with_rows(document, rows))

    assert "+0.00%" in text
    assert "-0.00%" not in text
    assert "-0.0%" not in text
