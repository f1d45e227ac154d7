"""Verdicts on two runs of the same questions, arm by arm.

Here a clear difference is no fault by itself, it is what changed: its direction decides.
"""

from dataclasses import replace

from eaglebench.gate.lengths import length_finding
from eaglebench.gate.precision import are_too_many, too_close_to_tell
from eaglebench.records.verdict import Finding, Verdict
from eaglebench.stats.bootstrap import LengthInterval
from eaglebench.stats.difference import Difference
from eaglebench.stats.pairing import NOT_PAIRED, PairClass


def judge_runs(
    cell_id: str, arm: str, difference: Difference, interval: LengthInterval | None
) -> Finding:
    """The verdict on one cell and arm of the later run against the earlier one."""
    compared = [pair for pair in difference.pairs if pair.tier != "unpaired"]
    changed = [pair for pair in compared if pair.kind != "identical"]
    clear = [pair for pair in changed if pair.kind != "near-tie"]
    others = [pair for pair in difference.pairs if pair.kind == "other-prompts"]
    verdict: Verdict
    if others:
        named = list(dict.fromkeys(pair.question_id for pair in others))
        reason = f"{len(named)} questions ask something else under the same id"
        verdict, changed = "NOT_COMPARABLE", others
    elif not compared:
        verdict, reason = "NOT_COMPARABLE", "no turn ran in both with the same prompt"
    elif not changed:
        verdict, reason = "PASS", f"all {len(compared)} turns identical"
    else:
        reason = f"{len(changed)} of {len(compared)} turns differ ({_kinds(difference)})"
        doubt = too_close_to_tell(difference.close)
        if clear:
            verdict = _direction(difference.acceptance)
        elif doubt and are_too_many(len(changed), len(compared)):
            verdict, reason = "INCONCLUSIVE", f"{reason}; {doubt}"
        else:
            verdict = "PASS"
        if interval is not None:
            reason += f"; acceptance length {interval.change:+.2%}, on other prompts between "
            reason += f"{interval.low:+.2%} and {interval.high:+.2%}"
    finding = length_finding(cell_id, arm, difference, verdict, reason, (compared, changed))
    return replace(finding, half_width=interval.half_width if interval else None)


def _direction(change: float | None) -> Verdict:
    if change is None or change == 0:
        return "PASS"
    return "REGRESSED" if change < 0 else "IMPROVED"


def _kinds(difference: Difference) -> str:
    kinds: tuple[PairClass, ...] = ("near-tie", "draft-state", "target-state", *NOT_PAIRED)
    counted = ((difference.count(kind), kind) for kind in kinds)
    return ", ".join(f"{count} {kind}" for count, kind in counted if count)
