"""Verdicts on drafts: other proposals of the same head on the same prompts are another computation.

A fault of the head's state moves logits in every step and a draft in few, and most of these are
refused by the target all the same, so that lengths and counts pass.
"""

from collections.abc import Sequence
from dataclasses import replace

from eaglebench.gate.finding import found
from eaglebench.records.snapshot import ArmCounts, Snapshot
from eaglebench.records.verdict import Finding
from eaglebench.records.words import counted
from eaglebench.stats.metrics import DRAFTS

UNKNOWN = "drafts not recorded in {}: whether the same tokens were proposed can't be said"


def judge_drafts(candidate: ArmCounts, baseline: ArmCounts) -> list[Finding]:
    """One finding where both recorded their drafts.

    Questions whose answer or whose accepted counts changed are judged by these. Where the length
    rose as well, other drafts are what made it rise.
    """
    theirs = {question.question_id: question for question in baseline.questions}
    pairs = [(q, theirs[q.question_id]) for q in candidate.questions if q.question_id in theirs]
    known = [(q, o) for q, o in pairs if None not in (q.drafts_sha, o.drafts_sha)]
    if not known:
        return []
    changed = tuple(
        mine.question_id
        for mine, other in known
        if (mine.output_sha, mine.accept_sha) == (other.output_sha, other.accept_sha)
        and mine.drafts_sha != other.drafts_sha
    )
    before, after = baseline.acceptance_length, candidate.acceptance_length
    is_better = before is not None and after is not None and after > before
    reason = "unchanged"
    if changed:
        reason = (
            f"{counted(len(changed), 'question')} drafted other tokens that were accepted in the "
            "same steps"
        )
    finding = found(
        candidate.key, "REGRESSED" if changed and not is_better else "PASS", reason, DRAFTS
    )
    return [replace(finding, before=0, after=len(changed), allowed=0.0, questions=changed)]


def unknown_drafts(*snapshots: Snapshot) -> list[str]:
    """Notes on snapshots that recorded no drafts, though some were proposed."""
    return [UNKNOWN.format(each.name) for each in snapshots if not _knows_drafts(each.arms)]


def _knows_drafts(arms: Sequence[ArmCounts]) -> bool:
    return all(
        question.drafts_sha is not None
        for arm in arms
        if arm.num_drafts
        for question in arm.questions
    )
