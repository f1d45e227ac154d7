"""How far an estimate scatters, and what that leaves to be seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

Error = tuple[float, float]
"""Standard error and its degrees of freedom."""
POWER = 0.8


@dataclass(frozen=True, slots=True)
class Spread:
    """A standard error of several independent parts.

    Attributes:
        error: of their sum.
        freedom: degrees of freedom after Welch and Satterthwaite; infinite where all are known.
    """

    error: float
    freedom: float

    @classmethod
    def of(cls, parts: Sequence[Error]) -> "Spread":
        """The parts together: variances add up."""
        variance = sum(error**2 for error, _ in parts)
        if not variance:
            return cls(0.0, inf)
        rest = sum(error**4 / max(freedom, 1.0) for error, freedom in parts)
        return cls(variance**0.5, variance**2 / rest if rest else inf)

    def half_width(self, alpha: float) -> float:
        """One-sided half-width at level `alpha`."""
        return self._quantile(1 - alpha) * self.error

    def chance(self, difference: float) -> float:
        """Chance of such a loss, or a larger one, without a change."""
        from scipy import stats  # noqa: PLC0415  # slow to import

        if not self.error:
            return float(difference >= 0)
        return float(stats.t.cdf(difference / self.error, self.freedom))

    def smallest_effect(self, alpha: float, power: float = POWER) -> float:
        """Smallest true loss that is called with this power: (t(1-alpha) + t(power)) x error."""
        return (self._quantile(1 - alpha) + self._quantile(power)) * self.error

    def _quantile(self, share: float) -> float:
        from scipy import stats  # noqa: PLC0415

        return float(stats.t.ppf(share, self.freedom))
