"""The one rule for noisy metrics (`docs/methodology.md`): decide at half of what may be lost."""

from eaglebench.records.verdict import Verdict


def decide(change: float, half_width: float | None, allowed: float) -> Verdict:
    """Verdict on a relative change in which more is better.

    A loss of more than half of what is allowed that is surely a loss is a regression, however wide
    the interval. Anything else is decided by an interval at most half as wide as the allowed loss
    alone. So an unchanged metric fails, and a loss of `allowed` passes, each with at most the chance
    the interval was made for.
    """
    if half_width is None:
        return "INCONCLUSIVE"
    if change < -allowed / 2 and (change + half_width < 0 or half_width <= allowed / 2):
        return "REGRESSED"
    if half_width > allowed / 2:
        return "INCONCLUSIVE"
    return "IMPROVED" if change - half_width > 0 and change > allowed / 2 else "PASS"
