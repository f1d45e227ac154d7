"""Everything a report can show of one run; the formats render it and decide nothing."""

from dataclasses import dataclass

from eaglebench.records.doubt import Doubt
from eaglebench.records.measured import MeasuredRun
from eaglebench.records.verdict import Judgement, Verdict
from eaglebench.report.rows import Row
from eaglebench.stats.against import ArmAgainst
from eaglebench.stats.cells import CellDifference
from eaglebench.stats.groups import Group
from eaglebench.stats.sweep import Sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDocument:
    """One run, judged.

    Attributes:
        run: turns, blocks, options and environment.
        rows: one a cell and arm.
        judgement: against a baseline, or of the arms against `no-cache`.
        notes: remarks a reader should not have to find out alone.
        doubts: why a part of it can't be trusted, or what to know before trusting it.
        sweeps: cells that differ in the draft shape alone.
        cells: cells against earlier cells, in the same arm.
        groups: turns by category and by number.
        against: arms beside those of the baseline, where there is one.
    """

    run: MeasuredRun
    rows: tuple[Row, ...]
    judgement: Judgement
    notes: tuple[str, ...]
    sweeps: tuple[Sweep, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    cells: tuple[CellDifference, ...] = ()
    groups: tuple[Group, ...] = ()
    against: tuple[ArmAgainst, ...] = ()

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Every cell and arm."""
        return tuple((row.cell_id, row.arm) for row in self.rows)

    def verdict_on(self, row: Row) -> Verdict | None:
        """The heaviest verdict on a cell and arm; None where nothing was judged."""
        return self.judgement.verdict_on(row.cell_id, row.arm)
