"""What counts as a regression: `--fail-on al:1%`, `throughput:2%`, `verify_steps:0`, `al:0.02`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from eaglebench.errors import UsageError
from eaglebench.stats.metrics import ACCEPTANCE, COUNTERS, OUTPUT, metric

ALPHA = 0.01
IMPLAUSIBLE = 0.25
"""A gain of more than a quarter on the same workload is no gain but another measurement."""
DEFAULT_ALLOWED = 0.01
"""Loss of acceptance length at which a claim about other prompts fails."""
_RULE = re.compile(r"([a-z_]+)\s*:\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)")


@dataclass(frozen=True, slots=True)
class Rule:
    """How much of one metric may be lost.

    `allowed` is a share of the baseline, or with `is_absolute` an amount in the metric's own unit.
    """

    metric: str
    allowed: float
    is_absolute: bool = False

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


EXACT_RULES = tuple(Rule(name, 0.0) for name in (ACCEPTANCE, OUTPUT, *COUNTERS))
"""Without `--fail-on`, every integer has to be no worse."""


def parse_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Rules as typed; none typed are `EXACT_RULES`.

    Raises:
        UsageError: one is no rule, names no metric, or a metric is named twice.
    """
    rules = [_parse(part) for text in texts for part in text.split(",")]
    for rule in rules:
        if sum(other.metric == rule.metric for other in rules) > 1:
            raise UsageError(f"--fail-on names {rule.metric} twice")
    return tuple(rules) or EXACT_RULES


def _parse(text: str) -> Rule:
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"--fail-on {text!r} is no rule",
            hint="METRIC:LOSS, such as al:1%, al:0.02, throughput:2% or verify_steps:0",
        )
    known, amount = metric(found[1]), float(found[2])
    if found[3]:
        return Rule(known.name, amount / 100)
    is_absolute = amount > 0
    if is_absolute and not known.is_deterministic:
        raise UsageError(
            f"--fail-on {text!r}: {known.name} is a ratio; give the loss in per cent",
            hint=f"{known.name}:2%",
        )
    return Rule(known.name, amount, is_absolute=is_absolute)
