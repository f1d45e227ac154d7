"""The report as one HTML page that needs nothing from the network."""

import re
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.records.verdict import BY_WEIGHT
from eaglebench.report.answer import answer_lines, headline
from eaglebench.report.charts import chart_data
from eaglebench.report.document import ReportDocument
from eaglebench.report.judgement_table import findings_table
from eaglebench.report.phrases import BY_POSITION, LENGTH, NO_VALUE, paste_lines, verdict_counts
from eaglebench.report.row_tables import KINDS, RUN_COLUMNS, facts_table, partings_table, runs_table
from eaglebench.report.table import Table
from eaglebench.report.wider_tables import wider_tables

MAX_ROWS = 2000
"""A browser stays quick with so many rows; what is cut is counted on the page."""
CHART_LIBRARY = "plotly/plotly-cartesian.min.js"
"""The smallest bundle with bars, lines and heat maps, without what draws maps and spheres."""
WANTED = (
    *("cell", "arm", "questions", "acceptance length", f"length against {BASELINE_ARM}"),
    *("token/s", f"throughput against {BASELINE_ARM}", "by position"),
)
"""Columns that a screen 1280 pixels wide shows without scrolling; counters follow behind them."""
LEFT_TO_OTHERS = {"al_sglang", "al_vllm", "why"}
"""Columns of a run that the page has no room for; the lines to paste and other tables have them."""
ENVIRONMENT_CLASSES = {
    "exact": "Environment, exact: counts are comparable where these are equal",
    "timing": "Environment, timing: times are comparable where these are equal too",
    "info": "Environment, info: never compared",
}
_SCRIPT_END = re.compile(r"</(?=script)", re.IGNORECASE)


def render_html(document: ReportDocument) -> str:
    """The whole page as text: tables first, then charts that a script draws."""
    environment = Environment(
        loader=PackageLoader("eaglebench.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment.get_template("report.html.j2").render(_content(document))


def _content(document: ReportDocument) -> dict[str, Any]:
    run, rows, judgement = document.run, document.rows, document.judgement
    findings, partings = findings_table(judgement), partings_table(rows)
    place = partings.filters["kind"]
    return {
        "run": run,
        "suite": run.suite.get("name") or NO_VALUE,
        "target": run.models.get("target_id") or NO_VALUE,
        "dtype": run.models.get("dtype") or NO_VALUE,
        "judgement": judgement,
        "verdict_counts": verdict_counts(judgement),
        "headline": headline(document),
        "answers": answer_lines(document),
        "findings": findings,
        "paste": "\n".join(paste_lines(rows)),
        "runs": runs_table(
            rows,
            *dict.fromkeys((*WANTED, *(n for n in RUN_COLUMNS if n not in LEFT_TO_OTHERS))),
            name="runs",
            title="Every cell and arm: counts of the first pass, times of all passes",
            remarks=(f"{LENGTH}; the lines to paste count it, as SGLang does; {BY_POSITION}",),
        ),
        "wider": wider_tables(document),
        "max_rows": MAX_ROWS,
        "no_value": NO_VALUE,
        "partings": partings,
        "facts": _facts(document),
        "notes": (*document.notes, *judgement.notes),
        "choices": {
            "arm": sorted(
                {row.arm for row in rows} | {f.arm for f in judgement.findings if f.arm != "*"}
            ),
            "verdict": [name for name in BY_WEIGHT if judgement.with_verdict(name)],
            "kind": [kind for kind in KINDS if any(row[place] == kind for row in partings.rows)],
        },
        "charts": chart_data(run.turns, rows, document.sweeps, document.against),
        "plotly": _plotly(),
    }


def _facts(document: ReportDocument) -> list[Table]:
    run = document.run
    thresholds = "Near-tie thresholds: smaller swings are near-ties (gaps in runs without them)"
    facts = {
        f"environment-{name}": (caption, run.environment.get(name, {}))
        for name, caption in ENVIRONMENT_CLASSES.items()
    } | {
        "suite-facts": ("Questions", run.suite),
        "model-facts": ("Models", run.models),
        "options": ("Options of the run", run.config),
        "tau": (thresholds, run.tau),
        "git": ("Code", run.git or {}),
    }
    return [facts_table(name, *told) for name, told in facts.items()]


def _plotly() -> str:
    """The chart library's own script, unable to end the element it is put in."""
    script = files("eaglebench.report").joinpath(CHART_LIBRARY).read_text(encoding="utf-8")
    return _SCRIPT_END.sub(r"<\\/", script)
