"""The findings of a judgement as tables: all of them, and the few that a terminal shows."""

from collections.abc import Sequence

from eaglebench.records.verdict import Finding, Judgement
from eaglebench.report.phrases import Interval, first_few, heaviest_first, place_text, reason_text
from eaglebench.report.table import Column, Table, make_table
from eaglebench.stats.metrics import ACCEPTANCE

MAX_NAMED = 12
"""Questions named in one cell of a page."""
_VERDICT = Column("verdict", "verdict", "verdict", filter="verdict")
_ARM = Column("arm", "arm", filter="arm")
_PLACE = (Column("cell", "cell_id"), _ARM, Column("metric", "metric"))
_WHOLE_PLACE = Column("cell, arm, metric", place_text, short="cell, arm, metric")


def findings_table(judgement: Judgement, *, is_whole: bool = False) -> Table:
    """All findings, heaviest first; `is_whole` adds values and names every question."""
    columns = [
        *(_VERDICT, *_PLACE, Column("why", "reason")),
        Column("change", lambda found: Interval(found.change, found.half_width), "change"),
        Column("smallest detectable", "mde", "share"),
        Column("tier", "tier"),
        Column(
            "questions",
            lambda found: first_few(found.questions, None if is_whole else MAX_NAMED) or None,
        ),
    ]
    if is_whole:
        columns += [Column(name, name, "exact") for name in ("before", "after")]
        columns.append(Column("allowed loss", "allowed", "share"))
    title = f"Findings: {judgement.candidate} against {judgement.baseline}, heaviest first"
    found = heaviest_first(judgement.findings)
    return make_table(columns, found, name="findings", title=title, heading=1)


def verdicts_table(findings: Sequence[Finding], *, is_wide: bool) -> Table:
    """One line a finding, with where and why."""
    place = _PLACE if is_wide else (_WHOLE_PLACE,)
    return make_table((_VERDICT, *place, Column("why", reason_text)), findings)


def telling(judgement: Judgement) -> list[Finding]:
    """What is no pass, heaviest first; where everything passed, one finding a cell and arm."""
    found = heaviest_first(f for f in judgement.findings if f.verdict != "PASS")
    if found:
        return found
    chosen: dict[tuple[str, str], Finding] = {}
    for finding in sorted(judgement.findings, key=lambda finding: finding.metric != ACCEPTANCE):
        chosen.setdefault((finding.cell_id, finding.arm), finding)
    return list(chosen.values())
