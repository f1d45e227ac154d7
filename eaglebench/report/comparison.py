"""The comparison of a run as one document, for `comparison.json`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from eaglebench.report.rows import Row
from eaglebench.stats.difference import Difference
from eaglebench.stats.pairing import Pair
from eaglebench.stats.tau import Tau


def comparison_document(rows: Sequence[Row], tau: Tau) -> dict[str, Any]:
    """Each cell and arm against others: ratios, classes, and every turn that parted."""
    return {
        "tau": asdict(tau),
        "comparisons": [
            {"cell_id": row.cell_id, "arm": row.arm, **difference_document(difference)}
            for row in rows
            for difference in row.differences
        ],
    }


def difference_document(difference: Difference) -> dict[str, Any]:
    """One difference, with every turn that parted; plain values for JSON."""
    return {
        "against": difference.against,
        "turns": len(difference.pairs),
        "turns_by_class": dict(sorted(Counter(pair.kind for pair in difference.pairs).items())),
        "same_output": difference.num_same_output,
        "close_choices": asdict(difference.close),
        "acceptance_change": difference.acceptance,
        "throughput_change": difference.throughput,
        "log_ratio": difference.log_ratio,
        "ratio": asdict(difference.ratio) if difference.ratio else None,
        "p_shorter": difference.p_value,
        "parted": [_pair(pair) for pair in difference.pairs if pair.kind != "identical"],
    }


def _pair(pair: Pair) -> dict[str, Any]:
    document = asdict(pair)
    for name in ("gap", "swing") if pair.parting is not None else ():
        if not isfinite(document["parting"][name]):
            document["parting"][name] = None  # JSON has no infinity: only one arm drafted here
    return document
