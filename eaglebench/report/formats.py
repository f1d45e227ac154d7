"""The formats of a report by the name under which they are asked for."""

from collections.abc import Callable

from eaglebench.report.bencher import render_bencher
from eaglebench.report.csv_table import render_csv
from eaglebench.report.document import ReportDocument
from eaglebench.report.github_benchmark import render_github_benchmark
from eaglebench.report.json_document import render_json
from eaglebench.report.junit import render_junit
from eaglebench.report.markdown import render_markdown
from eaglebench.report.pull_request import render_pull_request


def _render_page(document: ReportDocument) -> str:
    from eaglebench.report.html import render_html  # noqa: PLC0415  # slow to import

    return render_html(document)


FORMATS: dict[str, Callable[[ReportDocument], str]] = {
    "md": render_markdown,
    "pr": render_pull_request,
    "html": _render_page,
    "junit": render_junit,
    "json": render_json,
    "csv": render_csv,
    "github-benchmark": render_github_benchmark,
    "bencher": render_bencher,
}
