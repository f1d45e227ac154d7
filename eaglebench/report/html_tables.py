"""The tables of the HTML page as plain texts, row by row; the template only places them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eaglebench.records.counters import share
from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.records.verdict import BY_WEIGHT, Finding, Judgement
from eaglebench.report.leads import LEADS, leads_text
from eaglebench.report.phrases import NO_VALUE, SHARE, SHORT_SHARE, number
from eaglebench.report.rows import Row, questions_answered
from eaglebench.report.text_table import TextTable
from eaglebench.stats.difference import Difference
from eaglebench.stats.pairing import Pair, PairClass
from eaglebench.stats.prefix import CommonPrefix

MAX_ROWS = 2000
"""A browser stays quick with so many rows; what is cut is counted on the page."""
MAX_NAMED = 12
"""Questions named in one cell of the findings table."""
KINDS: tuple[PairClass, ...] = (
    "target-state",
    "draft-state",
    "failed",
    "other-prompts",
    "near-tie",
    "diverged-prompt",
)
"""Gravest first, so that a cut takes what matters least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlTable:
    """One table of texts.

    Attributes:
        id: of the element.
        caption: what the table shows.
        columns: heads.
        rows: texts, one a column.
        left_out: rows that were cut.
        heading: the column that names its row.
        numeric: columns set flush right.
        filters: columns that the page's selects look at, by select.
    """

    id: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0
    heading: int = 0
    numeric: tuple[int, ...] = ()
    filters: Mapping[str, int] = field(default_factory=dict)

    @property
    def filters_json(self) -> str:
        """The filters, for an attribute."""
        return json.dumps(self.filters)


def findings_table(judgement: Judgement) -> HtmlTable:
    """All findings, heaviest first."""
    findings = sorted(judgement.findings, key=lambda finding: BY_WEIGHT.index(finding.verdict))
    return HtmlTable(
        id="findings-table",
        caption=f"Findings: {judgement.candidate} against {judgement.baseline}, heaviest first",
        columns=(
            "verdict",
            "cell",
            "arm",
            "metric",
            "reason",
            "change",
            "smallest detectable effect",
            "tier",
            "questions",
        ),
        rows=tuple(_finding(finding) for finding in findings[:MAX_ROWS]),
        left_out=max(0, len(findings) - MAX_ROWS),
        heading=1,
        numeric=(5, 6),
        filters={"verdict": 0, "arm": 2},
    )


def runs_table(rows: Sequence[Row]) -> HtmlTable:
    """One row a cell and arm."""
    return HtmlTable(
        id="runs-table",
        caption="Every cell and arm: counts of the first pass, times of all passes",
        columns=(
            "cell",
            "arm",
            "questions",
            "acceptance length",
            "by position",
            "token/s",
            "verify steps",
            "cached tokens",
            "prefilled tokens",
            "pages taken",
            "alloc calls",
            "evictions",
            f"length against {BASELINE_ARM}",
            f"token/s against {BASELINE_ARM}",
        ),
        rows=tuple(_run(row) for row in rows[:MAX_ROWS]),
        left_out=max(0, len(rows) - MAX_ROWS),
        numeric=tuple(range(2, 14)),
        filters={"arm": 1},
    )


def partings_table(rows: Sequence[Row]) -> HtmlTable:
    """Every turn that is not the same in both arms, gravest class first."""
    found = [
        (row, difference, pair)
        for row in rows
        for difference in row.differences
        for pair in difference.pairs
        if pair.kind != "identical"
    ]
    found.sort(key=lambda entry: KINDS.index(entry[2].kind))
    return HtmlTable(
        id="partings-table",
        caption="Turns that differ between two arms, gravest class first",
        columns=(
            "question",
            "turn",
            "cell",
            "arm",
            "against",
            "tier",
            "class",
            "side",
            "step",
            "position",
            LEADS,
            "common tokens",
            "length on them",
            "other arm's length",
            "more verify steps",
        ),
        rows=tuple(_parting(*entry) for entry in found[:MAX_ROWS]),
        left_out=max(0, len(found) - MAX_ROWS),
        numeric=(1, *range(8, 15)),
        filters={"arm": 3, "kind": 6},
    )


def wider_table(table: TextTable) -> HtmlTable:
    """A table over several cells or arms."""
    return HtmlTable(
        id=f"{table.id}-table",
        caption=table.caption,
        columns=table.columns,
        rows=table.rows[:MAX_ROWS],
        left_out=max(0, len(table.rows) - MAX_ROWS),
        numeric=tuple(n for n, letter in enumerate(table.alignment) if letter == "r"),
    )


def facts_table(element_id: str, caption: str, facts: Mapping[str, Any]) -> HtmlTable:
    """Names and values, nested ones with dotted names, in the order of the names."""
    return HtmlTable(
        id=element_id,
        caption=caption,
        columns=("name", "value"),
        rows=tuple((name, _shown(value)) for name, value in sorted(_flat(facts).items())),
    )


def _finding(finding: Finding) -> tuple[str, ...]:
    change = number(finding.change, SHARE)
    if finding.half_width is not None:
        change += f" ± {finding.half_width:.2%}"
    named = ", ".join(finding.questions[:MAX_NAMED])
    if len(finding.questions) > MAX_NAMED:
        named += f" and {len(finding.questions) - MAX_NAMED} more"
    return (
        finding.verdict,
        finding.cell_id,
        finding.arm,
        finding.metric,
        finding.reason,
        change,
        NO_VALUE if finding.mde is None else f"{finding.mde:.2%}",
        finding.tier or NO_VALUE,
        named or NO_VALUE,
    )


def _run(row: Row) -> tuple[str, ...]:
    counts, difference = row.counts, row.difference
    return (
        row.cell_id,
        row.arm,
        questions_answered(row),
        number(counts.acceptance_length, ".3f"),
        " ".join(f"{share:.2f}" for share in row.by_position) or NO_VALUE,
        number(row.speed.tokens_per_s if row.speed else None, ".2f"),
        number(counts.verify_steps, "d"),
        number(counts.cached_tokens, "d"),
        number(counts.prefill_tokens_computed, "d"),
        number(counts.pages_allocated, "d"),
        number(counts.alloc_calls, "d"),
        number(counts.evictions, "d"),
        number(difference.acceptance if difference else None, SHARE),
        _throughput(difference),
    )


def _throughput(difference: Difference | None) -> str:
    """The estimate over paired passes where there are some, else the pooled change."""
    ratio = difference.ratio if difference else None
    if ratio is not None and ratio.half_width is not None:
        return f"{ratio.change:{SHORT_SHARE}} ± {ratio.half_width:.1%}"
    return number(difference.throughput if difference else None, SHORT_SHARE)


def _parting(row: Row, difference: Difference, pair: Pair) -> tuple[str, ...]:
    parting, prefix = pair.parting, pair.prefix
    return (
        pair.question_id,
        str(pair.turn + 1),
        row.cell_id,
        row.arm,
        difference.against,
        pair.tier,
        pair.kind,
        parting.side if parting else NO_VALUE,
        str(parting.step) if parting else NO_VALUE,
        str(parting.position) if parting else NO_VALUE,
        leads_text(parting) if parting else NO_VALUE,
        *_common(prefix),
        number(pair.verify_steps_difference, "+d"),
    )


def _common(prefix: CommonPrefix | None) -> tuple[str, str, str]:
    if prefix is None:
        return NO_VALUE, NO_VALUE, NO_VALUE
    lengths = (
        share(prefix.emitted, prefix.verify_steps),
        share(prefix.other_emitted, prefix.other_verify_steps),
    )
    return str(prefix.num_tokens), number(lengths[0], ".3f"), number(lengths[1], ".3f")


def _flat(facts: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _shown(value: Any) -> str:
    if value is None or value in ("", [], {}, ()):
        return NO_VALUE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_shown(entry) for entry in value)
    return str(value)
