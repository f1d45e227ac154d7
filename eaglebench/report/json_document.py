"""A run, and its comparisons, as JSON that any parser reads."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from eaglebench.report.answer import answer_lines, headline
from eaglebench.report.document import ReportDocument
from eaglebench.report.rows import Row
from eaglebench.stats.cells import CellDifference
from eaglebench.stats.difference import Difference
from eaglebench.stats.groups import Group
from eaglebench.stats.sweep import Sweep
from eaglebench.stats.tau import Tau

RUN_FACTS = (
    *("run_id", "status", "started", "suite", "config", "models", "git", "environment", "tau"),
)


def render_json(document: ReportDocument) -> str:
    """Facts of the run, rows, differences, sweeps, verdict, findings and notes."""
    judgement = document.judgement
    return json_text(
        {
            "run": {name: getattr(document.run, name) for name in RUN_FACTS},
            "rows": [_row(row) for row in document.rows],
            "differences": _differences(document.rows),
            "cells": [_cell(each) for each in document.cells],
            "groups": [_group(group) for group in document.groups],
            "sweeps": [_sweep(sweep) for sweep in document.sweeps],
            "judgement": {
                "verdict": judgement.verdict,
                "candidate": judgement.candidate,
                "baseline": judgement.baseline,
                "findings": [asdict(finding) for finding in judgement.findings],
                "notes": judgement.notes,
            },
            "headline": headline(document),
            "answer": answer_lines(document),
            "notes": document.notes,
            "doubts": [{**asdict(doubt), "is_fatal": doubt.is_fatal} for doubt in document.doubts],
        }
    )


def json_text(value: Any) -> str:
    """Indented JSON; a number that JSON lacks is null."""
    return json.dumps(finite(value), indent=1, allow_nan=False) + "\n"


def finite(value: Any) -> Any:
    """The same value with None for every NaN and infinity in it."""
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): finite(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [finite(part) for part in value]
    return value


def comparison_document(rows: Sequence[Row], tau: Tau) -> dict[str, Any]:
    """Each cell and arm against others: ratios, classes, and every turn that parted."""
    return {"tau": asdict(tau), "comparisons": _differences(rows)}


def _differences(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {"cell_id": row.cell_id, "arm": row.arm, **difference_document(difference)}
        for row in rows
        for difference in row.differences
    ]


def difference_document(difference: Difference) -> dict[str, Any]:
    """One difference, with every turn that parted; plain values for JSON."""
    ratio = difference.ratio
    document: dict[str, Any] = finite(  # only one arm drafted where a turn's leads are infinite
        {
            "against": difference.against,
            "turns": len(difference.pairs),
            "turns_by_class": dict(sorted(Counter(pair.kind for pair in difference.pairs).items())),
            "same_output": difference.num_same_output,
            "close_choices": asdict(difference.close),
            "acceptance_change": difference.acceptance,
            "throughput_change": difference.throughput,
            "log_ratio": difference.log_ratio,
            "ratio": ratio and {**asdict(ratio), "change": ratio.change, "mde": ratio.mde},
            "p_shorter": difference.p_value,
            "parted": [asdict(pair) for pair in difference.pairs if pair.kind != "identical"],
        }
    )
    return document


def _row(row: Row) -> dict[str, Any]:
    speed = asdict(row.speed) if row.speed else None
    return {**row.as_dict(), "by_position": row.by_position, "speed": speed}


def _cell(found: CellDifference) -> dict[str, Any]:
    """A cell against an earlier one, in the same arm."""
    return {
        "cell_id": found.cell_id,
        "arm": found.arm,
        "axes": found.axes,
        "is_exact": found.is_exact,
        "tier": found.tier,
        "other_drafts": found.drafts.num_other,
        "common_drafts": found.drafts.num_common,
        "turns_left_out": found.num_left_out,
        **difference_document(found.difference),
    }


def _group(group: Group) -> dict[str, Any]:
    """Turns of one category, or of one number, in every cell and arm."""
    return {
        "kind": group.kind,
        "name": group.name,
        "turns": group.num_turns,
        "counts": [
            {
                "cell_id": cell_id,
                "arm": arm,
                "emitted": counts.emitted,
                "verify_steps": counts.verify_steps,
                "acceptance_length": counts.acceptance_length,
            }
            for (cell_id, arm), counts in group.counts.items()
        ],
    }


def _sweep(sweep: Sweep) -> dict[str, Any]:
    """Draft shapes side by side; their counts are in the rows."""
    fastest = sweep.fastest
    return {
        "setting": sweep.setting,
        "arm": sweep.arm,
        "reference": sweep.reference.cell_id,
        "cells": [
            {
                "cell_id": cell.cell_id,
                **asdict(cell.draft),
                "step_ms": cell.step_ms,
                "tokens_per_s": cell.speed.tokens_per_s if cell.speed else None,
                "rate_half_width": cell.rate_half_width,
                "ratio": asdict(cell.ratio) if cell.ratio else None,
                "over_no_speculation": (gain := sweep.gains.get(cell.cell_id)) and asdict(gain),
            }
            for cell in sweep.cells
        ],
        "fastest": fastest
        and {
            "cell_id": fastest.cell.cell_id,
            "rival": fastest.rival.cell_id,
            "factor": fastest.factor,
            "log_factors": fastest.log_factors,
            "not_told_apart": [cell.cell_id for cell in fastest.tied],
            "passes": fastest.passes,
        },
    }
