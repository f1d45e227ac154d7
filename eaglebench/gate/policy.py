"""What counts as a regression: `--fail-on al:1%`, `throughput:2%`, `verify_steps:0`, `al:0.02`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import floor

from eaglebench.errors import UsageError
from eaglebench.stats.metrics import ACCEPTANCE, COUNTERS, DRAFTS, OUTPUT, Metric, metric

ALPHA = 0.01
IMPLAUSIBLE = 0.25
"""A gain of more than a quarter on the same workload is no gain but another measurement."""
DEFAULT_ALLOWED = 0.01
"""Loss of acceptance length at which a claim about other prompts fails."""
MOST_PERCENT = 100
MOST_LENGTH = 64
"""Tokens a verify step: longer than any draft that is worth its while."""
MOST_COUNTED = 2**53
_RULE = re.compile(r"([a-z_]+)\s*:\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)")


@dataclass(frozen=True, slots=True)
class Rule:
    """How much of one metric may be lost.

    `allowed` is a share of the baseline, or with `is_absolute` an amount in the metric's own unit.
    `is_named` is a rule that somebody typed, which has to be judged or said not to be.
    """

    metric: str
    allowed: float
    is_absolute: bool = False
    is_named: bool = False

    @property
    def text(self) -> str:
        """The rule as it is typed."""
        amount = f"{self.allowed:g}" if self.is_absolute else f"{self.allowed * 100:g}%"
        return f"{self.metric}:{amount}"

    def share(self, before: float) -> float:
        """The allowed loss as a share of `before`."""
        if not self.is_absolute:
            return self.allowed
        return self.allowed / before if before else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of one gate.

    Attributes:
        rules: by metric; a metric without one is not judged.
        alpha: chance of calling an unchanged noisy metric regressed.
        across_environments: judge acceptance length by statistics where the exact fingerprints
            differ, instead of refusing.
        fail_on_new: cells that the baseline lacks are not comparable rather than a remark.
    """

    rules: tuple[Rule, ...]
    alpha: float = ALPHA
    across_environments: bool = False
    fail_on_new: bool = False

    def rule(self, name: str) -> Rule | None:
        """The rule for a metric."""
        return next((rule for rule in self.rules if rule.metric == name), None)

    @property
    def not_judged(self) -> tuple[str, ...]:
        """Counts without a rule."""
        return tuple(rule.metric for rule in EXACT_RULES if self.rule(rule.metric) is None)


EXACT_RULES = tuple(Rule(name, 0.0) for name in (ACCEPTANCE, OUTPUT, DRAFTS, *COUNTERS))
"""Without a rule on a count, every integer has to be no worse."""


def parse_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Rules as typed; where none is on a count, `EXACT_RULES` stand beside them.

    A rule on time asks for more, not for less; one on a count says which counts are judged.

    Raises:
        UsageError: one is no rule, names no metric, or a metric is named twice.
    """
    rules = [_parse(part) for text in texts for part in text.split(",")]
    for rule in rules:
        if sum(other.metric == rule.metric for other in rules) > 1:
            raise UsageError(f"--fail-on names {rule.metric} twice")
    on_counts = any(metric(rule.metric).is_deterministic for rule in rules)
    return tuple(rules) if on_counts else (*EXACT_RULES, *rules)


def _parse(text: str) -> Rule:
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"--fail-on {text!r} is no rule",
            hint="METRIC:LOSS, such as al:1%, al:0.02, throughput:2% or verify_steps:0",
        )
    known, amount = metric(found[1]), float(found[2])
    is_absolute = amount > 0 and not found[3]
    _check_amount(text, known, amount, is_absolute=is_absolute)
    share = amount if is_absolute else amount / 100
    return Rule(known.name, share, is_absolute=is_absolute, is_named=True)


def _check_amount(text: str, known: Metric, amount: float, *, is_absolute: bool) -> None:
    """Refuse what no run could lose, and what could not be judged."""
    name = known.name
    if name == OUTPUT and amount:
        raise UsageError(
            f"--fail-on {text!r}: the engine is lossless, so no output may change",
            hint=f"{OUTPUT}:0",
        )
    if name == DRAFTS and amount:
        raise UsageError(
            f"--fail-on {text!r}: drafts are the same or they are not", hint=f"{DRAFTS}:0"
        )
    if is_absolute and not known.is_deterministic:
        raise UsageError(
            f"--fail-on {text!r}: {name} is a ratio; give the loss in per cent", hint=f"{name}:2%"
        )
    if is_absolute and name in COUNTERS and amount != floor(min(amount, MOST_COUNTED)):
        raise UsageError(f"--fail-on {text!r}: {name} is a whole number", hint=f"{name}:4")
    if is_absolute and name == ACCEPTANCE and amount >= MOST_LENGTH:
        raise UsageError(
            f"--fail-on {text!r}: no acceptance length can lose so much", hint=f"{name}:0.02"
        )
    if not is_absolute and amount >= MOST_PERCENT:
        raise UsageError(
            f"--fail-on {text!r}: expected less than {MOST_PERCENT} %", hint=f"{name}:1%"
        )
