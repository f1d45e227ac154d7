"""Rows of the run table: one a cell and arm, numbers only."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from eaglebench.records.counters import Counters
from eaglebench.records.knobs import BASELINE_ARM, FAULT_ARMS
from eaglebench.records.measured import MeasuredBlock, MeasuredTurn
from eaglebench.records.verdict import Finding
from eaglebench.stats.acceptance import Speed, acceptance_by_position, occupancy
from eaglebench.stats.difference import Difference, make_difference, sides_of
from eaglebench.stats.tau import Tau
from eaglebench.stats.throughput import estimate_ratio, pass_log_ratios

T = TypeVar("T", "Row", Finding)
CACHE = "radix"
"""What a fault arm is also compared with: the same cache without the fault."""
ROW_VALUES = (
    *("cell_id", "arm", "num_questions", "num_asked", "num_failed", *Counters.names(), "emitted"),
    *("acceptance_length", "al_sglang", "al_vllm", "tokens_per_s", "occupancy"),
)
"""Names of what a row holds, beside lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cell and arm.

    `num_questions` of the `num_asked` were answered in every measured turn; `num_failed` turns
    failed. `occupancy` is None where it was not recorded.
    """

    cell_id: str
    arm: str
    preallocation: str
    num_questions: int
    num_asked: int
    num_failed: int
    counts: Counters
    by_position: tuple[float, ...]
    speed: Speed | None
    occupancy: float | None
    differences: tuple[Difference, ...]

    @property
    def difference(self) -> Difference | None:
        """Against `no-cache`; None for `no-cache` itself and where it did not run."""
        return next((d for d in self.differences if d.against == BASELINE_ARM), None)

    @property
    def other_difference(self) -> Difference | None:
        """Against another arm than `no-cache`: what a fault arm is also compared with."""
        return next((d for d in self.differences if d.against != BASELINE_ARM), None)

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens delivered a second; None where nothing was timed."""
        return self.speed.tokens_per_s if self.speed else None

    def as_dict(self) -> dict[str, Any]:
        """`ROW_VALUES`, for CSV, JSON and data frames."""
        holders = {name: self.counts if hasattr(self.counts, name) else self for name in ROW_VALUES}
        return {name: getattr(holder, name) for name, holder in holders.items()}


def make_rows(
    turns: Sequence[MeasuredTurn], blocks: Sequence[MeasuredBlock], tau: Tau
) -> list[Row]:
    """Rows in the order in which cells and arms first appear.

    Counts are those of the first pass (the others repeat it), times those of all passes.
    """
    turns = [turn for turn in turns if turn.pass_index == 0]
    sides = sides_of(turns, blocks)
    rows = []
    for (cell_id, arm), mine in sides.items():
        asked = {turn.question_id for turn in mine.turns if turn.is_measured}
        failed = [turn for turn in mine.turns if turn.error is not None]
        differences = []
        for other in _compared_with(arm):
            if theirs := sides.get((cell_id, other)):
                ratio = estimate_ratio(pass_log_ratios(blocks, cell_id, arm, other))
                differences.append(make_difference(mine, theirs, other, tau, ratio))
        row = Row(
            cell_id=cell_id,
            arm=arm,
            preallocation=mine.turns[0].knobs.preallocation,
            num_questions=len(asked - {turn.question_id for turn in failed if turn.is_measured}),
            num_asked=len(asked),
            num_failed=len(failed),
            counts=mine.counts,
            by_position=acceptance_by_position(mine.turns),
            speed=mine.speed,
            occupancy=occupancy(mine.blocks),
            differences=tuple(differences),
        )
        rows.append(row)
    return rows


def by_cell(items: Iterable[T]) -> dict[str, list[T]]:
    """Rows or findings of each cell, in their order."""
    cells: dict[str, list[T]] = {}
    for item in items:
        cells.setdefault(item.cell_id, []).append(item)
    return cells


def _compared_with(arm: str) -> tuple[str, ...]:
    """Every arm with `no-cache`; one that shares pages wrongly with `radix` as well."""
    if arm == BASELINE_ARM:
        return ()
    return (BASELINE_ARM, CACHE) if arm in FAULT_ARMS else (BASELINE_ARM,)
