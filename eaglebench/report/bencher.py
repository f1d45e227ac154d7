"""Bencher Metric Format: a benchmark a setting, cell and arm, with its measures."""

from math import exp

from eaglebench.report.document import ReportDocument
from eaglebench.report.json_document import finite, json_text
from eaglebench.report.rows import Row
from eaglebench.report.run_key import series_name

Metric = dict[str, float | None]


def render_bencher(document: ReportDocument) -> str:
    """Measures of every cell and arm; what was not measured is left out."""
    series = series_name(document.run)
    benchmarks = {f"{series}/{row.cell_id}/{row.arm}": _measures(row) for row in document.rows}
    return json_text({name: measures for name, measures in benchmarks.items() if measures})


def _measures(row: Row) -> dict[str, Metric]:
    """Only the ratio to `no-cache` has bounds: counts are exact, and times are paired."""
    ratio = row.difference.ratio if row.difference else None
    measures: dict[str, Metric] = {
        "acceptance_length": {"value": row.counts.acceptance_length},
        "throughput": {"value": row.tokens_per_s},
    }
    if ratio is not None:
        bounds = {"value": 0.0}
        if ratio.half_width is not None:
            bounds |= {"lower_value": -ratio.half_width, "upper_value": ratio.half_width}
        measures["throughput_ratio"] = {n: exp(ratio.log_ratio + b) for n, b in bounds.items()}
    known = {
        name: {bound: value for bound, value in metric.items() if finite(value) is not None}
        for name, metric in measures.items()
    }
    return {name: metric for name, metric in known.items() if "value" in metric}
