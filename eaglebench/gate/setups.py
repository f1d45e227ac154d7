"""Verdicts on two setups: another head, shape or temperature on the same questions.

Their drafts differ by right, so that no step is a fault. What is compared is how much of them is
accepted: exactly on these questions, and with an interval on others where there are enough.
"""

from dataclasses import replace

from eaglebench.gate.finding import found, refused
from eaglebench.records.verdict import Finding, Verdict
from eaglebench.records.words import doing
from eaglebench.stats.bootstrap import LEAST_QUESTIONS, LengthInterval
from eaglebench.stats.difference import Difference
from eaglebench.stats.metrics import ACCEPTANCE


def judge_setups(
    cell_id: str,
    arm: str,
    difference: Difference,
    interval: LengthInterval | None,
    num_questions: int,
) -> Finding:
    """Which of two setups accepts more.

    Args:
        cell_id: cell of the later one.
        arm: its arm.
        difference: over the turns that both answered.
        interval: of the relative change over questions; None where there are too few.
        num_questions: that both answered.
    """
    key, change = (cell_id, arm), difference.acceptance
    others = [pair for pair in difference.pairs if pair.kind == "other-prompts"]
    if others or not num_questions or change is None:
        reason = "no question was answered in both"
        if others:
            names = list(dict.fromkeys(pair.question_id for pair in others))
            reason = doing(len(names), "question", "ask")
            reason = f"{reason} something else: {', '.join(names[:8])}"
        return refused(reason, key, ACCEPTANCE)
    verdict: Verdict
    if interval is None or num_questions < LEAST_QUESTIONS:
        verdict = "PASS" if not change else "IMPROVED" if change > 0 else "REGRESSED"
        reason = (
            f"acceptance length {change:+.2%} on these {num_questions} questions; of others nothing is "
            f"claimed below {LEAST_QUESTIONS}"
        )
    else:
        is_sure = interval.low > 0 or interval.high < 0
        verdict = "INCONCLUSIVE" if change else "PASS"
        if is_sure:
            verdict = "IMPROVED" if change > 0 else "REGRESSED"
        reason = (
            f"acceptance length {change:+.2%}, on other prompts between {interval.low:+.2%} and "
            f"{interval.high:+.2%}"
        )
    return replace(
        found(key, verdict, reason, ACCEPTANCE),
        before=difference.other_counts.acceptance_length,
        after=difference.counts.acceptance_length,
        change=change,
        half_width=interval.half_width if interval else None,
    )
