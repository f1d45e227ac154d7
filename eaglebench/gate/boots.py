"""Verdicts on two versions of the code that were started in turns, A B B A."""

from collections.abc import Mapping, Sequence
from math import expm1

from eaglebench.gate.rule import decide
from eaglebench.records.verdict import Finding, Verdict
from eaglebench.stats.throughput import LEAST_PAIRS, estimate_ratio, pairs_needed

LogRatios = Mapping[tuple[str, str], Sequence[float]]
"""Ln(tok/s of B / tok/s of A) of every pair of processes, by cell and arm."""


def judge_boots(log_ratios: LogRatios, allowed: float, alpha: float) -> list[Finding]:
    """One finding on throughput for each cell and arm, and one over all of them."""
    findings = [_judge(*key, values, allowed, alpha) for key, values in log_ratios.items()]
    if len(log_ratios) > 1:
        pairs = zip(*log_ratios.values(), strict=True)
        means = [sum(values) / len(values) for values in pairs]
        findings.append(_judge("all cells", "all arms", means, allowed, alpha))
    return findings


def _judge(
    cell_id: str, arm: str, values: Sequence[float], allowed: float, alpha: float
) -> Finding:
    estimate = estimate_ratio(values, alpha)
    verdict: Verdict = "NOT_COMPARABLE"
    reason = "nothing was timed"
    if estimate is not None:
        half_width = estimate.half_width if estimate.pairs >= LEAST_PAIRS else None
        verdict = decide(estimate.change, half_width, allowed)
        width = "" if estimate.half_width is None else f" +- {estimate.half_width:.2%}"
        reason = f"throughput {estimate.change:+.2%}{width} over {estimate.pairs} pairs"
        if verdict == "INCONCLUSIVE" and estimate.sd is not None:
            reason += f"; about {pairs_needed(estimate.sd, allowed)} pairs would tell"
    return Finding(
        cell_id=cell_id,
        arm=arm,
        metric="throughput",
        verdict=verdict,
        reason=reason,
        change=expm1(estimate.log_ratio) if estimate else None,
        half_width=estimate.half_width if estimate else None,
        mde=estimate.mde if estimate else None,
        allowed=allowed,
    )
