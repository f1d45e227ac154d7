"""Verdicts on integers: the same code on the same questions gives the same ones.

What carries no noise is a regression at the loss that was typed, or at half of it. A count is a
whole number, so the whole amount that was typed may be lost and one more may not. A ratio is
decided at half of what was typed, as a noisy one is (`docs/methodology.md`).
"""

from dataclasses import dataclass, replace
from math import floor

from eaglebench.gate.drafts import judge_drafts
from eaglebench.gate.finding import found
from eaglebench.gate.policy import IMPLAUSIBLE, Policy, Rule
from eaglebench.records.snapshot import ArmCounts, QuestionCounts
from eaglebench.records.verdict import Finding, Verdict
from eaglebench.records.words import doing
from eaglebench.stats.metrics import (
    ACCEPTANCE,
    COUNTERS,
    DRAFTS,
    OUTPUT,
    Metric,
    metric,
    relative_change,
)

_DIGITS = 6
"""A share of a count is a whole number up to what floats leave behind the point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What may be lost, and what was.

    Attributes:
        share: of the value before.
        is_exceeded: whether more was lost.
        text: the limit in words; empty where nothing may be lost.
    """

    share: float
    is_exceeded: bool
    text: str


def limit_of(rule: Rule, before: float, after: float) -> Limit:
    """The limit of one metric, held against what it was and is."""
    known = metric(rule.metric)
    if rule.metric in COUNTERS:
        return _of_count(rule, known, before, after)
    allowed = rule.share(before)
    return Limit(
        share=allowed / 2,
        is_exceeded=known.loss(before, after) > allowed / 2,
        text=f"{allowed / 2:.3%}, half of what {rule.text} allows" if allowed else "",
    )


def _of_count(rule: Rule, known: Metric, before: float, after: float) -> Limit:
    typed = rule.allowed if rule.is_absolute else round(rule.allowed * before, _DIGITS)
    most = floor(typed)
    lost = before - after if known.higher_is_better else after - before
    return Limit(
        share=most / before if before else 0.0,
        is_exceeded=lost > most,
        text=f"{most} ({rule.text})" if rule.allowed else "",
    )


def judge_counts(candidate: ArmCounts, baseline: ArmCounts, policy: Policy) -> list[Finding]:
    """Findings on output, acceptance length and counters, as far as the policy names them."""
    changed = changed_questions(candidate, baseline)
    tier = "diverged" if changed["output"] else "matched" if changed["accepted"] else "identical"
    findings: list[Finding] = []
    if policy.rule(OUTPUT) is not None:
        findings.append(_output(candidate, changed["output"]))
    if policy.rule(DRAFTS) is not None:
        findings += judge_drafts(candidate, baseline)
    for name in (ACCEPTANCE, *COUNTERS):
        rule = policy.rule(name)
        before, after = value_of(baseline, name), value_of(candidate, name)
        if rule is not None and before is not None and after is not None:
            questions = changed["output"] + changed["accepted"] if name == ACCEPTANCE else ()
            findings.append(_judge(candidate, rule, before, after, tier, questions))
    return findings


def changed_questions(candidate: ArmCounts, baseline: ArmCounts) -> dict[str, tuple[str, ...]]:
    """Questions with other output tokens, and those with the same tokens in other verify steps."""
    theirs = {question.question_id: question for question in baseline.questions}
    pairs = [(q, theirs[q.question_id]) for q in candidate.questions if q.question_id in theirs]
    return {
        "output": _ids([mine for mine, other in pairs if mine.output_sha != other.output_sha]),
        "accepted": _ids(
            [
                mine
                for mine, other in pairs
                if mine.output_sha == other.output_sha and mine.accept_sha != other.accept_sha
            ]
        ),
    }


def value_of(arm: ArmCounts, name: str) -> float | None:
    """A metric's value; None where it was not measured."""
    if name == ACCEPTANCE:
        return arm.acceptance_length
    return arm.counters.get(name)


def _judge(
    candidate: ArmCounts,
    rule: Rule,
    before: float,
    after: float,
    tier: str,
    questions: tuple[str, ...],
) -> Finding:
    """What carries no noise is decided by the loss itself."""
    loss, limit = metric(rule.metric).loss(before, after), limit_of(rule, before, after)
    verdict: Verdict
    reason = _sentence(rule.metric, before, after)
    if limit.is_exceeded:
        verdict = "REGRESSED"
        reason += f", more than {limit.text}" if limit.text else ""
    elif -loss > IMPLAUSIBLE and rule.metric == ACCEPTANCE:
        verdict, reason = "NOT_COMPARABLE", f"{reason}: implausible for the same workload"
    elif loss < 0:
        verdict = "IMPROVED"
    else:
        verdict = "PASS"
        reason += f", no more than {limit.text}" if loss else ""
    if verdict == "PASS" and rule.metric == ACCEPTANCE and questions:
        reason = (
            f"{reason}, but {doing(len(questions), 'question', 'were')} accepted in other steps"
        )
    return replace(
        found(candidate.key, verdict, reason, rule.metric),
        before=before,
        after=after,
        change=relative_change(before, after),
        allowed=limit.share,
        tier=tier,
        questions=questions,
    )


def _output(candidate: ArmCounts, changed: tuple[str, ...]) -> Finding:
    having = doing(len(changed), "question", "have")
    reason = f"{having} other output tokens" if changed else "unchanged"
    return replace(
        found(candidate.key, "REGRESSED" if changed else "PASS", reason, OUTPUT),
        before=0,
        after=len(changed),
        allowed=0.0,
        tier="diverged" if changed else "identical",
        questions=changed,
    )


def _sentence(name: str, before: float, after: float) -> str:
    form = ".4f" if name == ACCEPTANCE else ".0f"
    if before == after:
        return f"{before:{form}}, unchanged"
    change = relative_change(before, after)
    share = f" ({change:+.2%})" if abs(change) != float("inf") else ""
    return f"{name} {before:{form}} -> {after:{form}}{share}"


def _ids(questions: list[QuestionCounts]) -> tuple[str, ...]:
    return tuple(question.question_id for question in questions)
