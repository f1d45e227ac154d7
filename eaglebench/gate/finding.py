"""How every judge of the gate makes a finding, and doubts as findings."""

from collections.abc import Iterable
from dataclasses import replace

from eaglebench.records.doubt import EVERYWHERE, Doubt, DoubtKind
from eaglebench.records.verdict import Finding, Verdict

_FAILURES: tuple[DoubtKind, ...] = ("failed", "aborted", "capacity")
"""Questions that should have been answered and were not; anything else is no measurement."""


def found(key: tuple[str, str], verdict: Verdict, reason: str, metric: str = EVERYWHERE) -> Finding:
    """A finding on a cell and arm, without figures: judges that have some `replace` them."""
    return Finding(cell_id=key[0], arm=key[1], metric=metric, verdict=verdict, reason=reason)


def reached(finding: Finding, idle: str | None) -> Finding:
    """A pass says so where nothing could have differed, and why."""
    if idle is None or finding.verdict != "PASS":
        return finding
    return replace(finding, reason=f"{finding.reason}; not exercised: {idle}")


def refused(
    reason: str, key: tuple[str, str] = (EVERYWHERE, EVERYWHERE), metric: str = EVERYWHERE
) -> Finding:
    """What was not or can't be compared is never a pass."""
    return found(key, "NOT_COMPARABLE", reason, metric)


def doubt_findings(doubts: Iterable[Doubt]) -> list[Finding]:
    """One finding for each doubt that takes a result away."""
    findings = []
    for doubt in doubts:
        if doubt.is_fatal:
            verdict: Verdict = "FAILED" if doubt.kind in _FAILURES else "NOT_COMPARABLE"
            made = found((doubt.cell_id, doubt.arm), verdict, doubt.text)
            findings.append(replace(made, questions=doubt.questions))
    return findings
