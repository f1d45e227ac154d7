"""The gate: one run against one baseline, cell by cell, then arm against arm inside the run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from eaglebench.gate.acceptance import judge_length, judge_positions
from eaglebench.gate.arms import judge_arm
from eaglebench.gate.comparable import (
    exact_differences,
    knows_prompts,
    other_prompts,
    timing_differences,
    workload_differences,
)
from eaglebench.gate.counts import judge_counts
from eaglebench.gate.drafts import unknown_drafts
from eaglebench.gate.finding import doubt_findings, found, reached, refused
from eaglebench.gate.policy import Policy
from eaglebench.gate.times import SLOWER_TOGETHER, judge_times
from eaglebench.records.doubt import EVERYWHERE, Doubt
from eaglebench.records.knobs import BASELINE_ARM, CACHE_ARMS
from eaglebench.records.snapshot import ArmCounts, Snapshot
from eaglebench.records.verdict import Finding, Judgement
from eaglebench.records.words import counted
from eaglebench.stats.difference import Difference
from eaglebench.stats.exercise import why_idle
from eaglebench.stats.metrics import ACCEPTANCE, THROUGHPUT

ArmDifferences = Mapping[tuple[str, str], Difference]
"""Every arm of a run against `no-cache`, by cell and arm."""
Pairs = Sequence[tuple[ArmCounts, ArmCounts]]
"""Arms of the candidate and what the baseline holds of them."""
INSIDE = f" vs {BASELINE_ARM}"
"""Behind the metric of a finding on an arm against another one of its own run."""
PROMPTS_UNKNOWN = "prompts not recorded in {}: whether they are the same can't be said"


def judge(
    candidate: Snapshot, baseline: Snapshot, policy: Policy, inside: ArmDifferences | None = None
) -> Judgement:
    """Hold a run against a baseline; `inside` are the run's own differences between arms."""
    findings, notes = list[Finding](), list[str]()
    wrong = workload_differences(candidate, baseline)
    if not candidate.is_complete:
        findings.append(refused(f"{candidate.name} is not complete: it was not run to its end"))
    elif wrong:
        findings.append(refused("the workloads differ: " + "; ".join(wrong)))
    else:
        pairs = _matched(candidate, baseline)
        notes += [
            PROMPTS_UNKNOWN.format(s.name) for s in (baseline, candidate) if not knows_prompts(s)
        ]
        notes += unknown_drafts(baseline, candidate)
        findings += _missing(candidate, baseline)
        findings += _new(candidate, baseline, policy, notes)
        findings += _failures(pairs)
        findings += _doubtful(candidate, pairs)
        pairs = [pair for pair in pairs if _has_same_questions(*pair, findings)]
        pairs = [pair for pair in pairs if _has_same_prompts(*pair, findings)]
        findings += _counted(pairs, candidate, baseline, policy, notes)
        timed = _timed(pairs, candidate, baseline, policy)
        if any(finding.verdict == "PASS" for finding in timed):
            notes.append(SLOWER_TOGETHER)
        findings += timed
        findings += _not_judged(pairs, policy, findings)
        if policy.not_judged:
            notes.append(f"not judged, as --fail-on asks: {', '.join(policy.not_judged)}")
    known = {arm.key for arm in baseline.arms}
    for (cell_id, arm), difference in (inside or {}).items():
        if arm in CACHE_ARMS or (cell_id, arm) not in known:
            finding = _inside(judge_arm(cell_id, arm, difference), difference)
            if finding.verdict != "FAILED" or (cell_id, arm) not in known:
                findings.append(finding)  # failures are held against those of the baseline above
    return Judgement(
        candidate=candidate.name,
        baseline=baseline.name,
        findings=tuple(findings),
        notes=tuple(notes),
    )


def judge_run(name: str, inside: ArmDifferences, doubts: Iterable[Doubt] = ()) -> Judgement:
    """Judge a run by its own `no-cache` arm alone; what can't be trusted is never a pass."""
    findings = [
        _inside(judge_arm(cell_id, arm, difference), difference)
        for (cell_id, arm), difference in inside.items()
    ]
    findings += doubt_findings(doubts)
    return Judgement(candidate=name, baseline=BASELINE_ARM, findings=tuple(findings))


def _matched(candidate: Snapshot, baseline: Snapshot) -> list[tuple[ArmCounts, ArmCounts]]:
    theirs = {arm.key: arm for arm in baseline.arms}
    return [(arm, theirs[arm.key]) for arm in candidate.arms if arm.key in theirs]


def _missing(candidate: Snapshot, baseline: Snapshot) -> list[Finding]:
    """A scenario that is gone was not measured; that is never a pass."""
    here = {arm.key for arm in candidate.arms}
    return [
        refused(f"in the baseline, but not in {candidate.name}", arm.key)
        for arm in baseline.arms
        if arm.key not in here
    ]


def _new(
    candidate: Snapshot, baseline: Snapshot, policy: Policy, notes: list[str]
) -> list[Finding]:
    known = {arm.key for arm in baseline.arms}
    new = [arm for arm in candidate.arms if arm.key not in known]
    if policy.fail_on_new:
        return [refused("not in the baseline", arm.key) for arm in new]
    notes += [f"{arm.cell_id} {arm.arm} is new: the baseline does not hold it" for arm in new]
    return []


def _failures(pairs: Pairs) -> list[Finding]:
    return [
        found(
            mine.key,
            "FAILED",
            f"{counted(mine.failed, 'turn')} failed, {theirs.failed} in the baseline",
        )
        for mine, theirs in pairs
        if mine.failed > theirs.failed
    ]


def _doubtful(candidate: Snapshot, pairs: Pairs) -> list[Finding]:
    """Doubts that the baseline was not allowed to have; failed turns are counted on their own."""
    allowed = {theirs.key: {doubt.kind for doubt in theirs.doubts} for _, theirs in pairs}
    return doubt_findings(
        doubt
        for arm in candidate.arms
        for doubt in arm.doubts
        if doubt.kind != "failed" and doubt.kind not in allowed.get(arm.key, set())
    )


def _has_same_questions(mine: ArmCounts, theirs: ArmCounts, findings: list[Finding]) -> bool:
    """Counts of other questions are other counts; the finding names how many are shared."""
    here = {question.question_id for question in mine.questions}
    there = {question.question_id for question in theirs.questions}
    if here == there and here:
        return True
    if not here:
        findings.append(refused("no question was answered", mine.key))
    else:
        reason = (
            f"{counted(len(here), 'question')}, the baseline has {len(there)}; "
            f"{len(here & there)} of them shared"
        )
        odd = tuple(sorted(here ^ there))
        findings.append(replace(refused(reason, mine.key), questions=odd))
    return False


def _has_same_prompts(mine: ArmCounts, theirs: ArmCounts, findings: list[Finding]) -> bool:
    """Other texts, another chat template or tokenizer make other questions of the same ids."""
    others = other_prompts(mine, theirs)
    if others:
        count = f"{len(others)} of {counted(len(mine.questions), 'question')} ask"
        reason = f"{count} something else under the same id: {', '.join(others[:8])}"
        reason += ", ..." if len(others) > 8 else ""
        findings.append(replace(refused(reason, mine.key), questions=others))
    return not others


def _counted(
    pairs: Pairs,
    candidate: Snapshot,
    baseline: Snapshot,
    policy: Policy,
    notes: list[str],
) -> list[Finding]:
    if all(rule.metric == THROUGHPUT for rule in policy.rules):
        return []
    differing = exact_differences(candidate, baseline)
    if differing and not policy.across_environments:
        return [refused("counts need the same environment; " + "; ".join(differing))]
    if differing:
        notes.append("another environment: " + "; ".join(differing))
        return [judge_length(*pair, policy) for pair in pairs]
    findings = [finding for pair in pairs for finding in judge_counts(*pair, policy)]
    if policy.rule(ACCEPTANCE) is not None:
        findings += judge_positions(pairs, policy)
    return findings


def _timed(
    pairs: Pairs,
    candidate: Snapshot,
    baseline: Snapshot,
    policy: Policy,
) -> list[Finding]:
    if policy.rule(THROUGHPUT) is None:
        return []
    differing = timing_differences(candidate, baseline)
    if differing:
        reason = "times need the same machine class; " + "; ".join(differing)
        return [refused(reason, metric=THROUGHPUT)]
    return judge_times(list(pairs), policy)


def _not_judged(pairs: Pairs, policy: Policy, findings: Sequence[Finding]) -> list[Finding]:
    """Rules that somebody typed and no finding answers: nothing judged is never a pass."""
    refusals = {finding.metric for finding in findings if finding.verdict == "NOT_COMPARABLE"}
    judged = {(finding.cell_id, finding.arm, finding.metric) for finding in findings}
    return [
        refused("not measured in the run or in the baseline, so not judged", mine.key, rule.metric)
        for rule in policy.rules
        if rule.is_named and not refusals & {EVERYWHERE, rule.metric}
        for mine, _ in pairs
        if (*mine.key, rule.metric) not in judged
        and not (rule.metric == THROUGHPUT and mine.arm == BASELINE_ARM)
    ]


def _inside(finding: Finding, difference: Difference) -> Finding:
    made = replace(finding, metric=finding.metric + INSIDE)
    return reached(made, why_idle(finding.arm, (), difference.counts))
