"""Verdicts on throughput: an arm against `no-cache` of its own run, held against the stored ratio.

Two runs are never compared by tokens a second: their ratios are. A ratio scatters from pass to pass,
and as a whole from run to run, which no number of passes of one run can show: a baseline of several
runs knows it, for one of a single run `RUN_SD` is taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import expm1, inf

from eaglebench.gate.finding import found, refused
from eaglebench.gate.policy import IMPLAUSIBLE, Policy
from eaglebench.gate.rule import decide
from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.records.snapshot import PPM, ArmCounts, ArmNoise
from eaglebench.records.verdict import Finding
from eaglebench.records.words import counted
from eaglebench.stats.many_tests import holm
from eaglebench.stats.metrics import THROUGHPUT
from eaglebench.stats.spread import Error, Spread
from eaglebench.stats.throughput import LEAST_PASSES, estimate_ratio, passes_needed

LogRatios = Mapping[tuple[str, str], Sequence[float]]
"""Ln(tok/s of B / tok/s of A) of every pair of processes, by cell and arm."""
RUN_SD = 0.01
"""Standard deviation of ln(ratio) between runs of one machine where it was not measured: runs of one
commit differ by half a per cent to one on shared machines (`docs/methodology.md`)."""
SLOWER_TOGETHER = (
    f"throughput is judged as a ratio to {BASELINE_ARM}: what slows all arms down alike is invisible to it; "
    "eaglebench ab sees it"
)
LEAST_RUNS = 5
"""Runs of a baseline from which on their own scatter is taken; of fewer it is hardly known."""


@dataclass(frozen=True, slots=True)
class _Timed:
    """A finding and the chance of such a loss without a change; None where nothing was measured."""

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
    spread = Spread.of(_parts(mine, theirs))
    change, half_width = expm1(difference), spread.half_width(alpha)
    verdict = decide(change, half_width, allowed)
    if change > IMPLAUSIBLE:
        verdict = "NOT_COMPARABLE"
    finding = replace(
        found(candidate.key, verdict, "", THROUGHPUT),
        allowed=allowed,
        before=expm1(theirs.log_ratio_ppm / PPM) + 1,
        after=expm1(mine.log_ratio_ppm / PPM) + 1,
        change=change,
        half_width=half_width,
        mde=spread.smallest_effect(alpha),
    )
    reason = _reason(finding, _what_would_tell(mine, theirs, half_width, allowed, alpha))
    return _Timed(replace(finding, reason=reason), spread.chance(difference))


def _parts(mine: ArmNoise, theirs: ArmNoise) -> list[Error]:
    """Standard errors that a run held against a baseline has, with their degrees of freedom.

    The scatter between runs of a baseline holds that of their passes. One more run scatters as they
    do, or as its own passes say where that is more.
    """
    own = _of_passes(mine)
    between = _between(theirs)
    if between is None:
        return [own, _of_passes(theirs), (RUN_SD, inf), (RUN_SD, inf)]
    sd, freedom = between
    if own[0] > sd:
        return [own, (sd / theirs.runs**0.5, freedom)]
    return [(sd * (1 + 1 / theirs.runs) ** 0.5, freedom)]


def _of_passes(noise: ArmNoise) -> Error:
    return noise.pass_sd_ppm / PPM / noise.passes**0.5, noise.passes - 1


def _between(noise: ArmNoise) -> Error | None:
    """Scatter of one run of a baseline; None where there were too few to know it."""
    if noise.run_sd_ppm is None or noise.runs < LEAST_RUNS:
        return None
    return noise.run_sd_ppm / PPM, noise.runs - 1


def _what_would_tell(
    mine: ArmNoise, theirs: ArmNoise, half_width: float, allowed: float, alpha: float
) -> str:
    """What makes the interval narrow enough: passes, as far as these are to blame, else runs."""
    known = _between(theirs)
    floor = (
        [(RUN_SD, inf)] * 2 if known is None else [(known[0] * (1 + 1 / theirs.runs) ** 0.5, inf)]
    )
    if Spread.of(floor).half_width(alpha) <= allowed / 2:
        passes = passes_needed(min(mine.passes, theirs.passes), half_width, allowed / 2)
        return f"about {passes} passes of each would tell"
    if known is None:
        runs = "one run" if theirs.runs == 1 else f"{theirs.runs} runs"
        return (
            f"a baseline of {runs} can't tell {allowed:.1%} from what runs differ by; one of ten "
            "(eaglebench baseline save --runs 10) or eaglebench ab would"
        )
    return f"runs of this machine differ by {known[0]:.2%}: eaglebench ab would tell"


def _reason(finding: Finding, would_tell: str) -> str:
    text = (
        f"throughput against {BASELINE_ARM} {finding.change:+.2%} +- {finding.half_width:.2%} of the "
        "stored ratio"
    )
    if finding.verdict == "INCONCLUSIVE":
        return f"{text}; {would_tell}"
    if finding.verdict == "NOT_COMPARABLE":
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
    """One finding on throughput for each cell and arm, and one over all of them.

    `alpha` is shared out among them (Bonferroni), so that all are right together.
    """
    share = alpha / (len(log_ratios) + (len(log_ratios) > 1) or 1)
    findings = [_judge_pairs(key, values, allowed, share) for key, values in log_ratios.items()]
    if len(log_ratios) > 1:
        pairs = zip(*log_ratios.values(), strict=True)
        means = [sum(values) / len(values) for values in pairs]
        findings.append(_judge_pairs(("all cells", "all arms"), means, allowed, share))
    return findings


def _judge_pairs(
    key: tuple[str, str], values: Sequence[float], allowed: float, alpha: float
) -> Finding:
    estimate = estimate_ratio(values, alpha)
    if estimate is None:
        return replace(refused("nothing was timed", key, THROUGHPUT), allowed=allowed)
    half_width = estimate.half_width if estimate.passes >= LEAST_PASSES else None
    verdict = decide(estimate.change, half_width, allowed)
    width = "" if half_width is None else f" +- {half_width:.2%}"
    reason = f"throughput {estimate.change:+.2%}{width} over {counted(estimate.passes, 'pair')}"
    if half_width is None:
        reason += f"; with fewer than {LEAST_PASSES} nothing is claimed"
    elif verdict == "INCONCLUSIVE":
        needed = passes_needed(estimate.passes, half_width, allowed / 2)
        reason += f"; about {needed} pairs would tell"
    return replace(
        found(key, verdict, reason, THROUGHPUT),
        change=estimate.change,
        half_width=half_width,
        mde=estimate.mde if half_width is not None else None,
        allowed=allowed,
    )
