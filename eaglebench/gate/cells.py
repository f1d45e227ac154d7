"""Verdicts on cells against cells: what must not change drafts has not changed them.

A fault that sits in every arm is in none of the differences between arms; a cell in which it can't
bite tells. Axes that change drafts by right are compared without a verdict. Planted faults are
there to be seen and are never judged.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from eaglebench.gate.arms import judge_arm
from eaglebench.gate.finding import reached
from eaglebench.records.faults import FAULTS
from eaglebench.records.knobs import base_arm
from eaglebench.records.verdict import Finding
from eaglebench.stats.cells import ACROSS_CELLS, CellDifference


def judge_cells(found: Iterable[CellDifference], playing: Collection[str] = ()) -> list[Finding]:
    """One finding a cell and arm that has turns in common with an equal setting before it.

    `playing` are faults that play another arm's part, and are judged as it would be.
    """
    return [
        reached(
            replace(judge_arm(each.cell_id, each.arm, each.difference), metric=ACROSS_CELLS),
            each.idle,
        )
        for each in found
        if each.is_exact
        and each.difference.pairs
        and (each.arm in playing or base_arm(each.arm) not in FAULTS)
    ]
