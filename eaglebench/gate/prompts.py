"""Verdicts on acceptance where the machines differ: a claim about other prompts, by statistics."""

from eaglebench.gate.policy import DEFAULT_ALLOWED, IMPLAUSIBLE, Policy
from eaglebench.gate.rule import decide
from eaglebench.records.snapshot import ArmCounts
from eaglebench.records.verdict import Finding, Verdict
from eaglebench.stats.bootstrap import LEAST_QUESTIONS, LEAST_STEPS, length_interval
from eaglebench.stats.metrics import ACCEPTANCE

TIER = "other-prompts"


def judge_length(candidate: ArmCounts, baseline: ArmCounts, policy: Policy) -> Finding:
    """Paired by question, with a BCa interval; refused where there are too few of them."""
    rule = policy.rule(ACCEPTANCE)
    allowed = rule.share(1.0) if rule is not None and rule.allowed else DEFAULT_ALLOWED
    counted = [q for q in candidate.questions if q.verify_steps >= LEAST_STEPS]
    interval = length_interval(candidate.questions, baseline.questions, policy.alpha)
    if len(counted) < LEAST_QUESTIONS or interval is None:
        return _finding(
            candidate,
            "NOT_COMPARABLE",
            f"{len(counted)} questions have at least {LEAST_STEPS} verify steps; a claim about "
            f"other prompts needs {LEAST_QUESTIONS}",
            allowed,
        )
    verdict: Verdict = decide(interval.change, interval.half_width, allowed)
    if verdict == "IMPROVED" and interval.change > IMPLAUSIBLE:
        verdict = "NOT_COMPARABLE"
    return _finding(
        candidate,
        verdict,
        f"acceptance length {interval.change:+.2%}, between {interval.low:+.2%} and "
        f"{interval.high:+.2%} on other prompts",
        allowed,
        interval.change,
        interval.half_width,
    )


def _finding(
    candidate: ArmCounts,
    verdict: Verdict,
    reason: str,
    allowed: float,
    change: float | None = None,
    half_width: float | None = None,
) -> Finding:
    return Finding(
        cell_id=candidate.cell_id,
        arm=candidate.arm,
        metric=ACCEPTANCE,
        verdict=verdict,
        reason=reason,
        change=change,
        half_width=half_width,
        allowed=allowed,
        tier=TIER,
    )
