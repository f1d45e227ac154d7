"""Doubts as findings: what can't be trusted is never a pass."""

from collections.abc import Iterable

from eaglebench.records.doubt import Doubt, DoubtKind
from eaglebench.records.verdict import Finding

_FAILURES: tuple[DoubtKind, ...] = ("failed", "aborted", "capacity")
"""Questions that should have been answered and were not; anything else is no measurement."""
EVERYTHING = "*"


def doubt_findings(doubts: Iterable[Doubt]) -> list[Finding]:
    """One finding for each doubt that takes a result away."""
    return [
        Finding(
            cell_id=doubt.cell_id,
            arm=doubt.arm,
            metric=EVERYTHING,
            verdict="FAILED" if doubt.kind in _FAILURES else "NOT_COMPARABLE",
            reason=doubt.text,
            questions=doubt.questions,
        )
        for doubt in doubts
        if doubt.is_fatal
    ]
