"""Verdicts inside one run: an arm held against another one that answered the same questions.

The engine is exact, so every difference has a cause. A near-tie is none; anything else is a fault
of the draft's or the target's state, whichever way the acceptance length moved.
"""

from eaglebench.gate.lengths import length_finding
from eaglebench.gate.precision import are_too_many, too_close_to_tell
from eaglebench.records.verdict import Finding, Verdict
from eaglebench.stats.difference import Difference

FAULTS = ("draft-state", "target-state")


def judge_arm(cell_id: str, arm: str, difference: Difference) -> Finding:
    """The verdict on an arm against another of the same run."""
    pairs = difference.pairs
    faults = [pair for pair in pairs if pair.kind in FAULTS]
    failed = [pair for pair in pairs if pair.kind == "failed"]
    ties = [pair for pair in pairs if pair.kind == "near-tie"]
    compared = [pair for pair in pairs if pair.tier != "unpaired"]
    others = [pair for pair in pairs if pair.kind == "other-prompts"]
    verdict: Verdict
    if others:
        verdict, named = "NOT_COMPARABLE", others
        reason = f"{len(others)} turns ask something else in {difference.against}"
    elif not compared:
        verdict, reason, named = "NOT_COMPARABLE", "no turn ran in both arms", failed
    elif faults:
        verdict, named = "REGRESSED", faults
        kinds = " and ".join(kind for kind in FAULTS if any(p.kind == kind for p in faults))
        reason = (
            f"{len(faults)} of {len(compared)} turns part from {difference.against} where the "
            f"choice was clear ({kinds}); acceptance length {_share(difference.acceptance)}"
        )
    elif failed:
        verdict, reason, named = "FAILED", f"{len(failed)} of {len(pairs)} turns failed", failed
    elif are_too_many(len(ties), len(compared)):
        verdict, named = "INCONCLUSIVE", ties
        reason = f"{len(ties)} of {len(compared)} turns part at near-ties; "
        reason += too_close_to_tell(difference.close) or "replay would tell"
    else:
        verdict, named = "PASS", ties
        reason = f"{len(compared) - len(ties)} of {len(compared)} turns identical"
        reason += f", {len(ties)} near-ties" if ties else ""
    return length_finding(cell_id, arm, difference, verdict, reason, (compared, named))


def _share(change: float | None) -> str:
    return "unknown" if change is None else f"{change:+.2%}"
