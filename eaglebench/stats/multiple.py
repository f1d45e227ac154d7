"""Many verdicts at once."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values after Holm's step-down correction (Holm 1979), in the same order."""
    from statsmodels.stats.multitest import multipletests  # noqa: PLC0415  # slow to import

    if not p_values:
        return []
    return [float(p) for p in multipletests(p_values, method="holm")[1]]
