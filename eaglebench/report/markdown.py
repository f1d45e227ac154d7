"""The whole report in Markdown: what was judged, every count, every turn that parted, the setting."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from eaglebench.records.verdict import Finding
from eaglebench.report.document import ReportDocument
from eaglebench.report.escaping import markdown_text
from eaglebench.report.leads import LEADS, leads_text
from eaglebench.report.phrases import (
    COMPARED,
    LENGTH,
    NO_VALUE,
    SHARE,
    commit_text,
    fact_text,
    heaviest_first,
    number,
    p_text,
    row_verdict,
    split_text,
    throughput_text,
    verdict_words,
    workload_text,
)
from eaglebench.report.pipe_table import NOTHING, pipe_table
from eaglebench.report.rows import Row, questions_answered
from eaglebench.report.run_tables import run_tables
from eaglebench.stats.difference import Difference
from eaglebench.stats.pairing import NOT_PAIRED, Pair

NAMES = ("cell_id", "arm")
"""What a row's values are told apart by; the tables of one cell have them outside."""
LENGTHS = (
    f"{LENGTH}; al_sglang = output tokens / verify steps, as `bench_sglang_eagle.py` prints it; "
    "al_vllm = 1 + accepted drafts / verify steps that carried drafts, as vLLM logs it."
)
SPEED = ("step_rate", "decode_share", "mixed_share", "wall_s")


def render_markdown(document: ReportDocument) -> str:
    """Everything the document holds, in GitHub's Markdown."""
    run, judgement = document.run, document.judgement
    against = f"{judgement.candidate} against {judgement.baseline}"
    about = {
        "run": run.run_id,
        "status": run.status,
        "started": run.started or None,
        "commit": commit_text(run),
        "near-tie thresholds": dict(run.tau) or None,
    }
    parts = [
        f"# {markdown_text(workload_text(document))}",
        f"**{judgement.verdict}**: {markdown_text(against)}: {verdict_words(judgement)}.",
        _facts(about),
        "## Notes",
        _bullets((*document.notes, *judgement.notes)),
        "## Findings",
        _findings(judgement.findings),
        "## Cells and arms",
        _summary(document),
        LENGTHS,
        *_cells(document.rows),
        *_tables(document),
        "## Against other arms",
        _differences(document.rows),
        _bullets(_splits(document.rows)),
        "## Turns that part",
        _partings(document.rows),
        "## Environment",
    ]
    for name, facts in run.environment.items():
        parts += [f"### {markdown_text(name)}", _facts(facts)]
    parts += ["## Suite", _facts(run.suite), "## Models", _facts(run.models)]
    parts += ["## Options", _facts(run.config)]
    return "\n\n".join(parts) + "\n"


def _findings(findings: Sequence[Finding]) -> str:
    header = ("verdict", "cell", "arm", "metric", "tier", "why", "questions")
    numbers = ("before", "after", "change", "half-width", "smallest detectable", "allowed loss")
    rows = [
        [
            finding.verdict,
            finding.cell_id,
            finding.arm,
            finding.metric,
            finding.tier or NO_VALUE,
            finding.reason,
            ", ".join(finding.questions) or NO_VALUE,
            _value(finding.before),
            _value(finding.after),
            number(finding.change, SHARE),
            number(finding.half_width, ".2%"),
            number(finding.mde, ".2%"),
            number(finding.allowed, ".2%"),
        ]
        for finding in heaviest_first(findings)
    ]
    return pipe_table((*header, *numbers), rows, _alignment(header, numbers))


def _summary(document: ReportDocument) -> str:
    header = ("cell", "arm", "verdict")
    numbers = ("questions", "acceptance length", "al_sglang", "al_vllm", "token/s")
    rows = [
        [
            row.cell_id,
            row.arm,
            row_verdict(document, row) or NO_VALUE,
            questions_answered(row),
            number(row.counts.acceptance_length, ".4f"),
            number(row.counts.al_sglang, ".4f"),
            number(row.counts.al_vllm, ".4f"),
            number(row.speed.tokens_per_s if row.speed else None, ".2f"),
        ]
        for row in document.rows
    ]
    return pipe_table((*header, *numbers), rows, _alignment(header, numbers))


def _cells(rows: Sequence[Row]) -> list[str]:
    """Counters and acceptance by position of each cell, an arm beside the other."""
    parts = []
    for cell_id in dict.fromkeys(row.cell_id for row in rows):
        of_cell = [row for row in rows if row.cell_id == cell_id]
        name = markdown_text(cell_id)
        parts += [f"### Counters of {name}", _counters(of_cell)]
        parts += [f"### Acceptance by position of {name}", _positions(of_cell)]
    return parts


def _tables(document: ReportDocument) -> list[str]:
    """Tables over several cells or arms, as far as the run has them."""
    parts = []
    for table in run_tables(document):
        parts.append(f"## {markdown_text(table.caption)}")
        parts.append(pipe_table(table.columns, table.rows, table.alignment))
        if table.remarks:
            parts.append(_bullets(table.remarks))
    return parts


def _counters(rows: Sequence[Row]) -> str:
    columns = [{**row.as_dict(), **_speed(row)} for row in rows]
    names = [name for name in columns[0] if name not in NAMES]
    table = [[name, *(_value(column[name]) for column in columns)] for name in names]
    arms = [row.arm for row in rows]
    return pipe_table(("counter", *arms), table, _alignment(("counter",), arms))


def _speed(row: Row) -> dict[str, float | None]:
    return {name: getattr(row.speed, name) if row.speed else None for name in SPEED}


def _positions(rows: Sequence[Row]) -> str:
    depth = max(len(row.by_position) for row in rows)
    if not depth:
        return NOTHING
    table = []
    for row in rows:
        missing = [NO_VALUE] * (depth - len(row.by_position))
        table.append([row.arm, *(number(share, ".4f") for share in row.by_position), *missing])
    positions = [str(position) for position in range(1, depth + 1)]
    return pipe_table(("arm", *positions), table, _alignment(("arm",), positions))


def _differences(rows: Sequence[Row]) -> str:
    header = ("cell", "arm", "against", "throughput")
    numbers = (
        *("acceptance length", *COMPARED, *NOT_PAIRED, "same output", "p(shorter)"),
        *("smallest detectable", "drift over passes"),
    )
    table = [
        [
            row.cell_id,
            row.arm,
            difference.against,
            throughput_text(difference),
            number(difference.acceptance, SHARE),
            *(str(difference.count(kind)) for kind in (*COMPARED, *NOT_PAIRED)),
            str(difference.num_same_output),
            p_text(difference.p_value),
            *_estimates(difference),
        ]
        for row in rows
        for difference in row.differences
    ]
    return pipe_table((*header, *numbers), table, _alignment(header, numbers))


def _estimates(difference: Difference) -> tuple[str, str]:
    ratio = difference.ratio
    if ratio is None:
        return NO_VALUE, NO_VALUE
    return number(ratio.mde, ".2%"), number(ratio.drift, SHARE)


def _splits(rows: Sequence[Row]) -> list[str]:
    return [
        f"{row.cell_id} {row.arm} against {difference.against}: {sentence}"
        for row in rows
        for difference in row.differences
        if (sentence := split_text(difference))
    ]


def _partings(rows: Sequence[Row]) -> str:
    """Every turn that is not the same in both arms."""
    header = ("cell", "arm", "against", "question", "turn", "class", "tier", "first choice")
    numbers = ("step", "position", LEADS, "verify steps", "common tokens")
    table = [
        [row.cell_id, row.arm, difference.against, *_parting(pair)]
        for row in rows
        for difference in row.differences
        for pair in difference.pairs
        if pair.kind != "identical"
    ]
    return pipe_table((*header, *numbers), table, _alignment(header, numbers))


def _parting(pair: Pair) -> list[str]:
    parting, prefix = pair.parting, pair.prefix
    return [
        pair.question_id,
        str(pair.turn + 1),  # turns are counted from 1 for people
        pair.kind,
        pair.tier,
        parting.side if parting else NO_VALUE,
        str(parting.step) if parting else NO_VALUE,
        str(parting.position) if parting else NO_VALUE,
        leads_text(parting) if parting else NO_VALUE,
        number(pair.verify_steps_difference, "+d"),
        str(prefix.num_tokens) if prefix else NO_VALUE,
    ]


def _facts(facts: Mapping[str, Any]) -> str:
    """Names and values, in the order in which the run holds them."""
    return pipe_table(("name", "value"), [[name, _fact(facts[name])] for name in facts], "ll")


def _fact(value: Any) -> str:
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return fact_text(value)


def _value(value: Any) -> str:
    """Counts in full, ratios with four digits."""
    return str(value) if isinstance(value, int) else number(value, ".4f")


def _alignment(texts: Sequence[str], numbers: Sequence[str]) -> str:
    return "l" * len(texts) + "r" * len(numbers)


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {markdown_text(line)}" for line in lines) or NOTHING
