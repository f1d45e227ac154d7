"""A difference of two means whose standard errors were stored, not their samples."""

Error = tuple[float, int]
"""Standard error of a mean and its degrees of freedom."""


def one_sided(difference: float, mine: Error, theirs: Error, alpha: float) -> tuple[float, float]:
    """One-sided half-width at level `alpha`, and the chance of such a loss without a change.

    Degrees of freedom after Welch and Satterthwaite.
    """
    from scipy import stats  # noqa: PLC0415  # slow to import

    variance = mine[0] ** 2 + theirs[0] ** 2
    if variance == 0:
        return 0.0, float(difference >= 0)
    freedom = variance**2 / sum(error**4 / max(count, 1) for error, count in (mine, theirs))
    scale = variance**0.5
    return (
        float(stats.t.ppf(1 - alpha, freedom) * scale),
        float(stats.t.cdf(difference / scale, freedom)),
    )
