"""A finding on acceptance length, out of a comparison question by question."""

from collections.abc import Sequence

from eaglebench.records.verdict import Finding, Verdict
from eaglebench.stats.difference import Difference
from eaglebench.stats.metrics import ACCEPTANCE
from eaglebench.stats.pairing import Pair, farthest_tier

ComparedAndNamed = tuple[Sequence[Pair], Sequence[Pair]]
"""Turns that could be compared, and those whose questions the finding names."""


def length_finding(
    cell_id: str,
    arm: str,
    difference: Difference,
    verdict: Verdict,
    reason: str,
    pairs: ComparedAndNamed,
) -> Finding:
    """The finding, with both lengths, the tier, and each named question once."""
    compared, named = pairs
    return Finding(
        cell_id=cell_id,
        arm=arm,
        metric=ACCEPTANCE,
        verdict=verdict,
        reason=reason,
        before=difference.other_counts.acceptance_length,
        after=difference.counts.acceptance_length,
        change=difference.acceptance,
        tier=farthest_tier(compared),
        questions=tuple(dict.fromkeys(pair.question_id for pair in named)),
    )
