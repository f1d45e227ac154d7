"""Chances of a loss, and what they are worth where many were asked at once."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values after Holm's step-down correction, in the same order.

    The k-th smallest of m (k from 0) is multiplied by m - k; none is smaller than the one before it
    nor larger than 1 (Holm 1979, A simple sequentially rejective multiple test procedure).
    """
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = least
    return corrected


def drop_p_value(accepted: int, drafts: int, expected_share: float) -> float:
    """Chance of so few acceptances if each draft were accepted with the expected share.

    One-sided binomial test; verify steps of one prompt are taken as independent, which makes it a
    hint rather than a proof.
    """
    from scipy import stats  # noqa: PLC0415  # slow to import

    return float(stats.binomtest(accepted, drafts, expected_share, alternative="less").pvalue)
