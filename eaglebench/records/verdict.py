"""What the judge says, as values: reports render them, the command line turns them into a status.

PASS            measured, and no worse than allowed
REGRESSED       measured, and worse
IMPROVED        measured, and better: a new baseline is due
INCONCLUSIVE    measured, but the times are too noisy to tell
NOT_COMPARABLE  another workload, machine or schema, or nothing to compare with
FAILED          questions that could be answered before can't be answered now
"""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["PASS", "REGRESSED", "IMPROVED", "INCONCLUSIVE", "NOT_COMPARABLE", "FAILED"]
BY_WEIGHT: tuple[Verdict, ...] = (
    "FAILED",
    "REGRESSED",
    "NOT_COMPARABLE",
    "INCONCLUSIVE",
    "IMPROVED",
    "PASS",
)
"""The first of them that occurs is the verdict over many findings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The verdict on one metric of one cell and arm.

    Attributes:
        cell_id, arm, metric: what was judged; `*` stands for all.
        verdict: see the module.
        reason: one sentence for people.
        before, after: values, where there are any.
        change: relative change, `after / before - 1`.
        half_width: one-sided half-width of the change's interval; None where nothing is noisy.
        mde: smallest change that such times detect with 80 % power; None where nothing is noisy.
        allowed: the relative loss above which it counts as a regression; None for exact equality.
        tier: how the questions compare (`identical`, `matched`, `diverged`, `other-prompts`).
        questions: those that differ.
    """

    cell_id: str
    arm: str
    metric: str
    verdict: Verdict
    reason: str
    before: float | None = None
    after: float | None = None
    change: float | None = None
    half_width: float | None = None
    mde: float | None = None
    allowed: float | None = None
    tier: str | None = None
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All findings of one comparison; nothing found at all is not a pass.

    Attributes:
        candidate, baseline: names for people.
        findings: by cell, arm and metric.
        notes: what a reader should know beside them.
        commands: what to type to see where and why.
    """

    candidate: str
    baseline: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The heaviest verdict; `NOT_COMPARABLE` without a finding."""
        found = {finding.verdict for finding in self.findings}
        return next((verdict for verdict in BY_WEIGHT if verdict in found), "NOT_COMPARABLE")

    def verdict_on(self, cell_id: str, arm: str) -> Verdict | None:
        """The heaviest verdict on a cell and arm; None where nothing was judged."""
        mine = {f.verdict for f in self.findings if (f.cell_id, f.arm) == (cell_id, arm)}
        return next((verdict for verdict in BY_WEIGHT if verdict in mine), None)

    def with_verdict(self, *verdicts: Verdict) -> tuple[Finding, ...]:
        """Findings of some verdicts, in order."""
        return tuple(finding for finding in self.findings if finding.verdict in verdicts)
