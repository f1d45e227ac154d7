"""Verdicts on acceptance beyond the pooled counts: by position, and on other prompts.

A drop at the first draft can hide in an unchanged mean. Counts of the same questions on the same
code are exact, so a drop needs no test to be real; the test says whether it would be expected on
other prompts. Its p-values, one for each gated cell and position, are corrected by Holm.
"""

from collections.abc import Sequence
from dataclasses import replace

from eaglebench.gate.finding import found, refused
from eaglebench.gate.policy import DEFAULT_ALLOWED, IMPLAUSIBLE, Policy
from eaglebench.gate.rule import decide
from eaglebench.records.snapshot import ArmCounts
from eaglebench.records.verdict import Finding
from eaglebench.stats.bootstrap import LEAST_QUESTIONS, LEAST_STEPS, length_interval
from eaglebench.stats.many_tests import drop_p_value, holm
from eaglebench.stats.metrics import ACCEPTANCE, relative_change

OTHER_PROMPTS = "other-prompts"


def judge_length(candidate: ArmCounts, baseline: ArmCounts, policy: Policy) -> Finding:
    """A claim about other prompts, for where the machines differ: by statistics.

    Paired by question, with a BCa interval; refused where there are too few of them.
    """
    rule = policy.rule(ACCEPTANCE)
    allowed = rule.share(1.0) if rule is not None and rule.allowed else DEFAULT_ALLOWED
    counted = [q for q in candidate.questions if q.verify_steps >= LEAST_STEPS]
    interval = length_interval(candidate.questions, baseline.questions, policy.alpha)
    if len(counted) < LEAST_QUESTIONS or interval is None:
        reason = (
            f"{len(counted)} questions have at least {LEAST_STEPS} verify steps; a claim about "
            f"other prompts needs {LEAST_QUESTIONS}"
        )
        finding = refused(reason, candidate.key, ACCEPTANCE)
        return replace(finding, allowed=allowed, tier=OTHER_PROMPTS)
    verdict = decide(interval.change, interval.half_width, allowed)
    if verdict == "IMPROVED" and interval.change > IMPLAUSIBLE:
        verdict = "NOT_COMPARABLE"
    reason = (
        f"acceptance length {interval.change:+.2%}, between {interval.low:+.2%} and "
        f"{interval.high:+.2%} on other prompts"
    )
    return replace(
        found(candidate.key, verdict, reason, ACCEPTANCE),
        change=interval.change,
        half_width=interval.half_width,
        allowed=allowed,
        tier=OTHER_PROMPTS,
    )


def judge_positions(pairs: Sequence[tuple[ArmCounts, ArmCounts]], policy: Policy) -> list[Finding]:
    """One finding for each position whose acceptance fell by more than half of what is allowed.

    Where the length itself did not fall, a position alone has to be more than chance would make of it
    (Holm over all positions): what one position lost, another has won.
    """
    rule = policy.rule(ACCEPTANCE)
    if rule is None:
        return []
    tested = [
        (mine, position, before, after)
        for mine, theirs in pairs
        for position, (before, after) in enumerate(_rates(mine, theirs), start=1)
    ]
    shorter = {mine.key for mine, theirs in pairs if _is_shorter(mine, theirs)}
    chances = holm(
        [
            drop_p_value(mine.accepted_at[position - 1], mine.num_drafts, before)
            for mine, position, before, _ in tested
        ]
    )
    return _unknown(pairs) + [
        _fallen(mine, position, before, after, chance)
        for (mine, position, before, after), chance in zip(tested, chances, strict=True)
        if -relative_change(before, after) > rule.share(before) / 2
        and (mine.key in shorter or chance < policy.alpha)
    ]


def _is_shorter(mine: ArmCounts, theirs: ArmCounts) -> bool:
    before, after = theirs.acceptance_length, mine.acceptance_length
    return before is not None and after is not None and after < before


def _unknown(pairs: Sequence[tuple[ArmCounts, ArmCounts]]) -> list[Finding]:
    """Positions that one side alone does not know, though drafts were accepted, are not passed over.

    Where neither knows them, the engine tells totals alone, and the length is what can be judged.
    """
    return [
        refused(f"{side} does not know which positions were accepted", mine.key, "al by position")
        for mine, theirs in pairs
        for arm, other, side in ((mine, theirs, "this run"), (theirs, mine, "the baseline"))
        if other.accepted_at and arm.counters.get("accepted") and not arm.accepted_at
    ]


def _fallen(mine: ArmCounts, position: int, before: float, after: float, chance: float) -> Finding:
    reason = (
        f"share accepted {before:.4f} -> {after:.4f}; as a claim about other prompts "
        f"p = {chance:.3f} (Holm)"
    )
    return replace(
        found(mine.key, "REGRESSED", reason, f"al at position {position}"),
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
