"""A run's arms beside the same arms of a baseline, on the questions that both have."""

from collections.abc import Mapping
from dataclasses import dataclass

from eaglebench.records.counters import share
from eaglebench.records.snapshot import ArmCounts, QuestionCounts, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAgainst:
    """One cell and arm.

    Attributes:
        cell_id, arm: as the run calls them.
        before, after: acceptance lengths in the baseline and in the run, over what both have.
        changed: questions with other tokens, accepted in other steps, or after other drafts.
        num_common: questions that both have.
        questions: tokens and verify steps of each in the baseline.
    """

    cell_id: str
    arm: str
    before: float | None
    after: float | None
    changed: tuple[str, ...]
    num_common: int
    questions: Mapping[str, tuple[int, int]]

    @property
    def change(self) -> float | None:
        """Relative change of the acceptance length."""
        if self.before is None or self.after is None or not self.before:
            return None
        return self.after / self.before - 1


def against_baseline(
    candidate: Snapshot, baseline: Snapshot, own_names: Mapping[str, str]
) -> list[ArmAgainst]:
    """Every arm that both have; `own_names` are those of arms that stand for another one."""
    theirs = {arm.key: arm for arm in baseline.arms}
    return [
        _against(arm, theirs[arm.key], own_names.get(arm.arm, arm.arm))
        for arm in candidate.arms
        if arm.key in theirs
    ]


def _against(mine: ArmCounts, theirs: ArmCounts, name: str) -> ArmAgainst:
    others = {question.question_id: question for question in theirs.questions}
    pairs = [(q, others[q.question_id]) for q in mine.questions if q.question_id in others]
    return ArmAgainst(
        cell_id=mine.cell_id,
        arm=name,
        before=_length([other for _, other in pairs]),
        after=_length([question for question, _ in pairs]),
        changed=tuple(q.question_id for q, other in pairs if _has_changed(q, other)),
        num_common=len(pairs),
        questions={q.question_id: (q.emitted, q.verify_steps) for q in theirs.questions},
    )


def _length(questions: list[QuestionCounts]) -> float | None:
    emitted = sum(question.emitted for question in questions)
    return share(emitted, sum(question.verify_steps for question in questions))


def _has_changed(mine: QuestionCounts, other: QuestionCounts) -> bool:
    """Drafts count where both recorded them."""
    if (mine.output_sha, mine.accept_sha) != (other.output_sha, other.accept_sha):
        return True
    return None not in (mine.drafts_sha, other.drafts_sha) and mine.drafts_sha != other.drafts_sha
