"""Verdicts of `compare` on what the turns of two runs cost: bookkeeping that no length shows."""

from dataclasses import replace

from eaglebench.gate.finding import found
from eaglebench.records.verdict import Finding
from eaglebench.stats.difference import Difference
from eaglebench.stats.metrics import metric, relative_change

BOOKKEEPING = (
    *("cached_tokens", "prefill_tokens_computed", "pages_allocated", "alloc_calls"),
    *("evictions", "preemptions"),
)
"""Counters that drafts do not explain; the others follow from what was accepted."""


def judge_bookkeeping(cell_id: str, arm: str, difference: Difference) -> list[Finding]:
    """A finding for each counter that changed over turns with the same prompts and the same tokens.

    Where one of them differs, turns are as long as they are, and their pages say nothing.
    """
    if any(pair.tier not in {"identical", "matched"} for pair in difference.pairs):
        return []
    findings = []
    for name in BOOKKEEPING:
        before, after = getattr(difference.other_counts, name), getattr(difference.counts, name)
        if None in (before, after) or before == after:
            continue
        loss = metric(name).loss(before, after)
        verdict = found((cell_id, arm), "REGRESSED" if loss > 0 else "IMPROVED", "", name)
        change = relative_change(before, after)
        share = f" ({change:+.2%})" if abs(change) != float("inf") else ""
        findings.append(
            replace(
                verdict,
                reason=f"{name} {before} -> {after}{share} over the same tokens",
                before=before,
                after=after,
                change=change,
            )
        )
    return findings
