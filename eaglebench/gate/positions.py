"""Acceptance by position: a drop at the first draft can hide in an unchanged mean.

Counts of the same questions on the same code are exact, so a drop needs no test to be real; the
test says whether it would be expected on other prompts. Its p-values, one for each gated cell and
position, are corrected by Holm.
"""

from collections.abc import Sequence

from eaglebench.gate.policy import Policy
from eaglebench.records.snapshot import ArmCounts
from eaglebench.records.verdict import Finding
from eaglebench.stats.many_tests import drop_p_value, holm
from eaglebench.stats.metrics import ACCEPTANCE, relative_change


def judge_positions(pairs: Sequence[tuple[ArmCounts, ArmCounts]], policy: Policy) -> list[Finding]:
    """One finding for each position whose acceptance fell by more than half of what is allowed."""
    rule = policy.rule(ACCEPTANCE)
    if rule is None:
        return []
    tested = [
        (mine, position, before, after)
        for mine, theirs in pairs
        for position, (before, after) in enumerate(_rates(mine, theirs), start=1)
    ]
    chances = holm(
        [
            drop_p_value(mine.accepted_at[position - 1], mine.num_drafts, before)
            for mine, position, before, _ in tested
        ]
    )
    return _unknown(pairs) + [
        _finding(mine, position, before, after, chance)
        for (mine, position, before, after), chance in zip(tested, chances, strict=True)
        if -relative_change(before, after) > rule.share(before) / 2
    ]


def _unknown(pairs: Sequence[tuple[ArmCounts, ArmCounts]]) -> list[Finding]:
    """Positions that one side does not know, though drafts were accepted, are not passed over."""
    found = []
    for mine, theirs in pairs:
        for arm, side in ((mine, "this run"), (theirs, "the baseline")):
            if arm.counters.get("accepted") and not arm.accepted_at:
                found.append(
                    Finding(
                        cell_id=mine.cell_id,
                        arm=mine.arm,
                        metric="al by position",
                        verdict="NOT_COMPARABLE",
                        reason=f"{side} does not know which positions were accepted",
                    )
                )
    return found


def _finding(mine: ArmCounts, position: int, before: float, after: float, chance: float) -> Finding:
    return Finding(
        cell_id=mine.cell_id,
        arm=mine.arm,
        metric=f"al at position {position}",
        verdict="REGRESSED",
        reason=f"share accepted {before:.4f} -> {after:.4f}; as a claim about other prompts "
        f"p = {chance:.3f} (Holm)",
        before=before,
        after=after,
        change=relative_change(before, after),
    )


def _rates(mine: ArmCounts, theirs: ArmCounts) -> list[tuple[float, float]]:
    """Share of drafts accepted at each position, before and after."""
    if not mine.num_drafts or not theirs.num_drafts:
        return []
    return [
        (theirs_at / theirs.num_drafts, mine_at / mine.num_drafts)
        for mine_at, theirs_at in zip(mine.accepted_at, theirs.accepted_at, strict=False)
    ]
