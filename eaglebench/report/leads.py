"""How clear a choice was in which two arms part, in one cell of a table."""

from math import isfinite

from eaglebench.stats.pairing import Parting

LEADS = "gap, swing"


def leads_text(parting: Parting) -> str:
    """The smaller lead of the two choices, and both together: `0.094, 0.56`."""
    if not isfinite(parting.gap):
        return "other draft length"  # there were no two logits
    return f"{parting.gap:.2g}, {parting.swing:.2g}"
