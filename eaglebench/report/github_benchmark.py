"""The list that github-action-benchmark reads as `customBiggerIsBetter`."""

from typing import Any

from eaglebench.report.document import ReportDocument
from eaglebench.report.json_document import finite, json_text
from eaglebench.report.phrases import NO_VALUE, cell_text, throughput_text
from eaglebench.report.rows import Row
from eaglebench.report.run_key import series_name


def render_github_benchmark(document: ReportDocument) -> str:
    """Acceptance length and throughput of every cell and arm, as far as they were measured."""
    series = series_name(document.run)
    entries = [
        {**entry, "name": f"{series} {row.cell_id} {row.arm} {entry['name']}"}
        for row in document.rows
        for entry in (_acceptance(row), _throughput(row))
        if entry["value"] is not None
    ]
    return json_text(entries)


def _acceptance(row: Row) -> dict[str, Any]:
    return {
        "name": "acceptance length",
        "unit": "tokens/step",
        "value": finite(row.counts.acceptance_length),
        "extra": f"{row.num_questions} questions, {row.counts.verify_steps} verify steps",
    }


def _throughput(row: Row) -> dict[str, Any]:
    """The range is that of the ratio to `no-cache`: tokens a second alone have none."""
    entry = {"name": "throughput", "unit": "token/s", "value": finite(row.tokens_per_s)}
    if (difference := row.difference) is None:
        return entry
    width = cell_text(difference.ratio.half_width if difference.ratio else None, "share")
    if width != NO_VALUE:
        entry["range"] = f"+- {width}"
    if (change := throughput_text(difference)) != NO_VALUE:
        entry["extra"] = f"against {difference.against}: {change}"
    return entry
