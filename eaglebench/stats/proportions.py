"""Shares of verify steps."""


def drop_p_value(accepted: int, drafts: int, expected_share: float) -> float:
    """Chance of so few acceptances if each draft were accepted with the expected share.

    One-sided binomial test; verify steps of one prompt are taken as independent, which makes it a
    hint rather than a proof.
    """
    from scipy import stats  # noqa: PLC0415  # slow to import

    return float(stats.binomtest(accepted, drafts, expected_share, alternative="less").pvalue)
