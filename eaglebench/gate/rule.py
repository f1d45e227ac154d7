"""The one rule for noisy metrics (`docs/methodology.md`): decide at half of what may be lost."""

from eaglebench.records.verdict import Verdict


def decide(change: float, half_width: float | None, allowed: float) -> Verdict:
    """Verdict on a relative change in which more is better.

    Only an interval at most half as wide as the allowed loss decides; then a change below minus
    half of it is a regression. So an unchanged metric fails, and a loss of `allowed` passes, each
    with at most the chance the interval was made for.
    """
    if half_width is None or half_width > allowed / 2:
        return "INCONCLUSIVE"
    if change < -allowed / 2:
        return "REGRESSED"
    return "IMPROVED" if change - half_width > 0 and change > allowed / 2 else "PASS"
