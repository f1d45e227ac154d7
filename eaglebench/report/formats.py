"""The formats of a report by the name under which they are asked for; each is loaded when used."""

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eaglebench.report.document import ReportDocument

FORMATS: Mapping[str, str] = {
    "html": "eaglebench.report.html:render_html",
    "md": "eaglebench.report.markdown:render_markdown",
    "pr": "eaglebench.report.pull_request:render_pull_request",
    "junit": "eaglebench.report.junit:render_junit",
    "json": "eaglebench.report.json_document:render_json",
    "csv": "eaglebench.report.csv_table:render_csv",
    "github-benchmark": "eaglebench.report.github_benchmark:render_github_benchmark",
    "bencher": "eaglebench.report.bencher:render_bencher",
}
"""What `report --format` offers, in its order."""


def render(form: str, document: "ReportDocument") -> str:
    """The document in one of `FORMATS`."""
    renderer: Callable[[ReportDocument], str] = resolve_name(FORMATS[form])
    return renderer(document)
