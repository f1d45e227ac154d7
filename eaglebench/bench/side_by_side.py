"""Several runs in one table, each against the first one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eaglebench.bench.compare import pair_runs
from eaglebench.bench.stored_run import Run
from eaglebench.plan.options import config_options
from eaglebench.plan.run_config import under_present_names
from eaglebench.records.measured import MeasuredRun
from eaglebench.records.verdict import Finding, Judgement
from eaglebench.report.cell_names import CellNames
from eaglebench.report.document import ReportDocument
from eaglebench.report.phrases import commit_text
from eaglebench.report.setups_table import SetupRow
from eaglebench.report.side_by_side import PairedRow
from eaglebench.stats.difference import Difference
from eaglebench.stats.throughput import RatioEstimate

NONE = "none"
_MODELS = {"model": "target_id", "draft_model": "draft_id", "dtype": "dtype"}
"""Options that stand in a run's record as what they came to."""
_DIFFERS = "the setups differ"
"""How a note begins that the table's first column makes needless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Runs held together, and the judgement on all but the first."""

    rows: tuple[SetupRow, ...]
    judgement: Judgement


def hold_side_by_side(runs: Sequence[Run], *, across_environments: bool = False) -> SideBySide:
    """Every cell and arm of several runs, paired with the first run's question by question.

    Raises:
        NothingMeasuredError: one of them holds no finished turn.
    """
    first, *later = runs
    setups = _setups([run.measured for run in runs])
    rows = _rows(first.document, setups[0], {}, None)
    cells = CellNames(row.cell_id for run in runs for row in run.document.rows)
    findings: list[Finding] = []
    notes: dict[str, None] = {}
    for run, setup in zip(later, setups[1:], strict=True):
        paired, judgement = pair_runs(first, run, {}, across_environments=across_environments)
        by_place = {(row.cell_id, row.arm): row for row in paired}
        found = _rows(run.document, setup, by_place, judgement)
        name = found[0].name
        rows += found
        findings += [
            replace(f, cell_id=f"{name} {cells[f.cell_id]}".strip()) for f in judgement.findings
        ]
        notes |= dict.fromkeys(note for note in judgement.notes if not note.startswith(_DIFFERS))
    judgement = Judgement(
        candidate=f"{len(later)} runs",
        baseline=first.run_id,
        findings=tuple(findings),
        notes=tuple(notes),
    )
    return SideBySide(rows=tuple(rows), judgement=judgement)


def _rows(
    document: ReportDocument,
    setup: Mapping[str, str],
    paired: Mapping[tuple[str, str], PairedRow],
    judgement: Judgement | None,
) -> list[SetupRow]:
    gains = _gains(document)
    rows = []
    for row in document.rows:
        place = (row.cell_id, row.arm)
        pair = paired.get(place)
        rows.append(
            SetupRow(
                run_id=document.run.run_id,
                setup=setup,
                cell_id=row.cell_id,
                arm=row.arm,
                length=row.counts.acceptance_length,
                change=pair.difference.acceptance if pair else None,
                others=pair.interval if pair else None,
                alike=_alike(pair.difference) if pair else None,
                verdict=judgement.verdict_on(*place) if judgement else None,
                tokens_per_s=row.tokens_per_s,
                gain=gains.get(place),
            )
        )
    return rows


def _alike(difference: Difference) -> tuple[int, int]:
    return difference.count("identical"), len(difference.pairs)


def _gains(document: ReportDocument) -> dict[tuple[str, str], RatioEstimate]:
    """Throughput over plain decoding by cell and arm, without that of plain decoding itself."""
    return {
        (cell_id, sweep.arm): gain
        for sweep in document.sweeps
        for cell_id, gain in sweep.gains.items()
        if gain is not None and (sweep.plain is None or cell_id != sweep.plain.cell_id)
    }


def _setups(runs: Sequence[MeasuredRun]) -> list[dict[str, str]]:
    """What the runs differ in, for each of them."""
    facts = [_facts(run) for run in runs]
    names = dict.fromkeys(name for each in facts for name in each)
    varying = [name for name in names if len({each.get(name, NONE) for each in facts}) > 1]
    return [{name: each.get(name, NONE) for name in varying} for each in facts]


def _facts(run: MeasuredRun) -> dict[str, str]:
    """What could tell a run from another: its options as they came out, and its code."""
    config: Mapping[str, Any] = under_present_names(run.config)
    named = {n for n, option in config_options().items() if option.affects != "nothing"}
    named -= {"algorithm"}  # the head says it
    facts = {n: _text(config[n]) for n in named & config.keys() if config[n] is not None}
    facts |= {n: _text(run.models.get(key)) for n, key in _MODELS.items()}
    facts["suite"] = _text(run.suite.get("name"))
    facts["code"] = commit_text(run)
    order = [*_MODELS, *config_options(), "suite", "code"]
    return {name: facts[name] for name in order if name in facts}


def _text(value: Any) -> str:
    """A folder by its last part, a number without a needless .0."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str) and "/" in value:
        return value.rstrip("/").rpartition("/")[2]
    return NONE if value is None else str(value)
