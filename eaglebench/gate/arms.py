"""Verdicts on turns held against turns of the same questions: arms of a run, or two runs.

The engine is exact, so every difference has a cause. Inside one run a near-tie is none; anything
else is a fault of the draft's or the target's state, whichever way the acceptance length moved.
Between two runs a clear difference is no fault by itself, it is what changed: its direction
decides.
"""

from collections.abc import Sequence
from dataclasses import replace

from eaglebench.gate.finding import found
from eaglebench.records.verdict import Finding, Verdict
from eaglebench.records.words import counted, doing
from eaglebench.stats.bootstrap import LengthInterval
from eaglebench.stats.difference import Difference
from eaglebench.stats.metrics import ACCEPTANCE
from eaglebench.stats.pairing import FAULTS, NOT_PAIRED, Pair, PairClass, farthest_tier
from eaglebench.stats.tau import CloseShares

NEAR_TIE_SHARE = 1 / 20
"""Near-ties are rare; more of them than this are looked at by a person."""


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
        reason = f"{doing(len(others), 'turn', 'ask')} something else in {difference.against}"
    elif not compared:
        verdict, reason, named = "NOT_COMPARABLE", "no turn ran in both arms", failed
    elif faults:
        verdict, named = "REGRESSED", faults
        kinds = " and ".join(kind for kind in FAULTS if any(p.kind == kind for p in faults))
        reason = (
            f"{len(faults)} of {counted(len(compared), 'turn')} part from {difference.against} "
            "where the "
            f"choice was clear ({kinds}); acceptance length {_share(difference.acceptance)}"
        )
    elif failed:
        verdict, reason, named = (
            "FAILED",
            f"{len(failed)} of {counted(len(pairs), 'turn')} failed",
            failed,
        )
    elif _are_too_many(len(ties), len(compared)):
        verdict, named = "INCONCLUSIVE", ties
        reason = f"{len(ties)} of {counted(len(compared), 'turn')} part at near-ties; "
        reason += _too_close_to_tell(difference.close) or "replay would tell"
    else:
        verdict, named = "PASS", ties
        reason = f"{len(compared) - len(ties)} of {counted(len(compared), 'turn')} identical"
        reason += f", {counted(len(ties), 'near-tie')}" if ties else ""
    return _on_length((cell_id, arm), difference, verdict, reason, compared, named)


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
        reason = f"{doing(len(named), 'question', 'ask')} something else under the same id"
        verdict, changed = "NOT_COMPARABLE", others
    elif not compared:
        verdict, reason = "NOT_COMPARABLE", "no turn ran in both with the same prompt"
    elif not changed:
        verdict, reason = "PASS", f"all {counted(len(compared), 'turn')} identical"
    else:
        reason = f"{len(changed)} of {counted(len(compared), 'turn')} differ"
        reason += f" ({_kinds(difference)})"
        doubt = _too_close_to_tell(difference.close)
        if clear:
            verdict = _direction(difference.acceptance)
        elif doubt and _are_too_many(len(changed), len(compared)):
            verdict, reason = "INCONCLUSIVE", f"{reason}; {doubt}"
        else:
            verdict = "PASS"
        if interval is not None:
            reason += f"; acceptance length {interval.change:+.2%}, on other prompts between "
            reason += f"{interval.low:+.2%} and {interval.high:+.2%}"
    finding = _on_length((cell_id, arm), difference, verdict, reason, compared, changed)
    return replace(finding, half_width=interval.half_width if interval else None)


def _direction(change: float | None) -> Verdict:
    if change is None or change == 0:
        return "PASS"
    return "REGRESSED" if change < 0 else "IMPROVED"


def _kinds(difference: Difference) -> str:
    kinds: tuple[PairClass, ...] = ("near-tie", "draft-state", "target-state", *NOT_PAIRED)
    counted = ((difference.count(kind), kind) for kind in kinds)
    return ", ".join(f"{count} {kind}" for count, kind in counted if count)


def _on_length(
    key: tuple[str, str],
    difference: Difference,
    verdict: Verdict,
    reason: str,
    compared: Sequence[Pair],
    named: Sequence[Pair],
) -> Finding:
    """With both lengths, the tier of what was compared, and each named question once."""
    return replace(
        found(key, verdict, reason, ACCEPTANCE),
        before=difference.other_counts.acceptance_length,
        after=difference.counts.acceptance_length,
        change=difference.acceptance,
        tier=farthest_tier(compared),
        questions=tuple(dict.fromkeys(pair.question_id for pair in named)),
    )


def _share(change: float | None) -> str:
    return "unknown" if change is None else f"{change:+.2%}"


def _are_too_many(num_ties: int, num_compared: int) -> bool:
    """Whether more than one turn, and more than the usual share, part at near-ties."""
    return num_ties > max(1, NEAR_TIE_SHARE * num_compared)


def _too_close_to_tell(close: CloseShares) -> str | None:
    """What to say of near-ties at this precision; None where close choices are rare."""
    if not close.are_many:
        return None
    sides = (("target", close.target), ("head", close.draft))
    told = " and ".join(f"{share:.1%} of the {who}'s" for who, share in sides if share is not None)
    return (
        f"not decidable at this precision, {told} choices lie within the noise of matrix shapes: "
        "--dtype float32 would tell"
    )
