"""Verdicts on throughput: an arm against `no-cache` of its own run, held against the stored ratio.

Two runs are never compared by tokens a second: their ratios are, and both are noisy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import expm1, hypot

from eaglebench.gate.finding import found, refused
from eaglebench.gate.policy import IMPLAUSIBLE, Policy
from eaglebench.gate.rule import decide
from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.records.snapshot import PPM, ArmCounts, ArmNoise
from eaglebench.records.verdict import Finding, Verdict
from eaglebench.stats.many_tests import holm, one_sided
from eaglebench.stats.metrics import THROUGHPUT
from eaglebench.stats.throughput import LEAST_PASSES, estimate_ratio, pairs_needed, smallest_effect

LogRatios = Mapping[tuple[str, str], Sequence[float]]
"""Ln(tok/s of B / tok/s of A) of every pair of processes, by cell and arm."""


@dataclass(frozen=True, slots=True)
class _Timed:
    """A finding and the chance of such a loss without a change; None where nothing was decided."""

    finding: Finding
    p_value: float | None


def judge_times(pairs: list[tuple[ArmCounts, ArmCounts]], policy: Policy) -> list[Finding]:
    """Findings on throughput of all cells together: p-values are corrected by Holm."""
    rule = policy.rule(THROUGHPUT)
    if rule is None:
        return []
    timed = [
        _judge(candidate, baseline, rule.allowed, policy.alpha)
        for candidate, baseline in pairs
        if candidate.arm != BASELINE_ARM
    ]
    decided = [entry for entry in timed if entry.p_value is not None]
    corrected = holm([entry.p_value for entry in decided if entry.p_value is not None])
    chances = {id(entry): p for entry, p in zip(decided, corrected, strict=True)}
    return [_corrected(entry, chances.get(id(entry)), policy.alpha) for entry in timed]


def _judge(candidate: ArmCounts, baseline: ArmCounts, allowed: float, alpha: float) -> _Timed:
    mine, theirs = candidate.noise, baseline.noise
    least = min((noise.passes if noise else 1) for noise in (mine, theirs))
    if mine is None or theirs is None or least < LEAST_PASSES:
        which = "this run" if mine is None or mine.passes < LEAST_PASSES else "the baseline"
        reason = (
            f"{which} has fewer than {LEAST_PASSES} passes; run with --passes {LEAST_PASSES}:40"
        )
        finding = found(candidate.key, "INCONCLUSIVE", reason, THROUGHPUT)
        return _Timed(replace(finding, allowed=allowed), None)
    difference = (mine.log_ratio_ppm - theirs.log_ratio_ppm) / PPM
    half_width, p_value = one_sided(difference, _error(mine), _error(theirs), alpha)
    change = expm1(difference)
    verdict = decide(change, half_width, allowed)
    if change > IMPLAUSIBLE:
        verdict = "NOT_COMPARABLE"
    sd = hypot(mine.pass_sd_ppm, theirs.pass_sd_ppm) / PPM
    reason = _reason(verdict, change, half_width, sd, allowed)
    finding = replace(
        found(candidate.key, verdict, reason, THROUGHPUT),
        allowed=allowed,
        before=expm1(theirs.log_ratio_ppm / PPM) + 1,
        after=expm1(mine.log_ratio_ppm / PPM) + 1,
        change=change,
        half_width=half_width,
        mde=smallest_effect(sd, min(mine.passes, theirs.passes)),
    )
    return _Timed(finding, p_value if half_width <= allowed / 2 else None)


def _error(noise: ArmNoise) -> tuple[float, int]:
    """Standard error of the mean log-ratio, and its degrees of freedom."""
    return noise.pass_sd_ppm / PPM / noise.passes**0.5, noise.passes - 1


def _reason(verdict: Verdict, change: float, half_width: float, sd: float, allowed: float) -> str:
    text = (
        f"throughput against {BASELINE_ARM} {change:+.2%} +- {half_width:.2%} of the stored ratio"
    )
    if verdict == "INCONCLUSIVE":
        return f"{text}; about {pairs_needed(sd, allowed)} passes would tell"
    if verdict == "NOT_COMPARABLE":
        return f"{text}: implausible for the same workload"
    return text


def _corrected(entry: _Timed, p_value: float | None, alpha: float) -> Finding:
    """A loss that could be one of many tries is not called a regression."""
    finding = entry.finding
    if finding.verdict != "REGRESSED" or p_value is None or p_value < alpha:
        return finding
    reason = f"{finding.reason}; p = {p_value:.3f} after Holm's correction"
    return replace(finding, verdict="INCONCLUSIVE", reason=reason)


def judge_processes(log_ratios: LogRatios, allowed: float, alpha: float) -> list[Finding]:
    """One finding on throughput for each cell and arm, and one over all of them."""
    findings = [_judge_pairs(key, values, allowed, alpha) for key, values in log_ratios.items()]
    if len(log_ratios) > 1:
        pairs = zip(*log_ratios.values(), strict=True)
        means = [sum(values) / len(values) for values in pairs]
        findings.append(_judge_pairs(("all cells", "all arms"), means, allowed, alpha))
    return findings


def _judge_pairs(
    key: tuple[str, str], values: Sequence[float], allowed: float, alpha: float
) -> Finding:
    estimate = estimate_ratio(values, alpha)
    if estimate is None:
        return replace(refused("nothing was timed", key, THROUGHPUT), allowed=allowed)
    half_width = estimate.half_width if estimate.passes >= LEAST_PASSES else None
    verdict = decide(estimate.change, half_width, allowed)
    width = "" if estimate.half_width is None else f" +- {estimate.half_width:.2%}"
    reason = f"throughput {estimate.change:+.2%}{width} over {estimate.passes} pairs"
    if verdict == "INCONCLUSIVE" and estimate.sd is not None:
        reason += f"; about {pairs_needed(estimate.sd, allowed)} pairs would tell"
    return replace(
        found(key, verdict, reason, THROUGHPUT),
        change=estimate.change,
        half_width=estimate.half_width,
        mde=estimate.mde,
        allowed=allowed,
    )
