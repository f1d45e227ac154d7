"""The loss at which a metric that carries no noise is a regression: what was typed, or half of it.

A count is a whole number, so the whole amount that was typed may be lost and one more may not. A
ratio is decided at half of what was typed, as a noisy one is (`docs/methodology.md`).
"""

from dataclasses import dataclass
from math import floor

from eaglebench.gate.policy import Rule
from eaglebench.stats.metrics import COUNTERS, Metric, metric

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
