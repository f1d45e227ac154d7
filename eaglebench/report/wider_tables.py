"""Tables over several cells or arms, each only where a run has something for it."""

from collections.abc import Sequence
from functools import partial

from eaglebench.records.counters import share
from eaglebench.records.knobs import EngineKnobs
from eaglebench.report.baseline_table import baseline_table
from eaglebench.report.cell_names import CellNames
from eaglebench.report.cell_tables import cells_table
from eaglebench.report.document import ReportDocument
from eaglebench.report.fault_table import fault_table
from eaglebench.report.group_table import group_table
from eaglebench.report.matrix_table import matrix_table
from eaglebench.report.row_tables import RUN_COLUMNS
from eaglebench.report.rows import Row
from eaglebench.report.sweep_tables import sweep_tables
from eaglebench.report.table import Column, Table, make_table
from eaglebench.stats.sweep import main_arm

RETURNED = (
    "pages returned = given back by the requests themselves, not those that the prefix cache took "
    "over; prompts are counted in"
)


def wider_tables(document: ReportDocument) -> list[Table]:
    """The matrix, draft shapes, cells against cells, allocation, faults, as far as a run has them."""
    found = [
        baseline_table(document),
        matrix_table(document),
        *sweep_tables(document.sweeps),
        cells_table(document),
        allocation_table(document.rows),
        group_table(document),
        fault_table(document),
    ]
    return [table for table in found if table is not None]


def allocation_table(rows: Sequence[Row]) -> Table | None:
    """What preallocation does to the allocator, a row a cell, the same arm in each.

    None where no cell takes pages ahead of need.
    """
    if all(row.preallocation == EngineKnobs().preallocation for row in rows):
        return None
    arm = main_arm([row.arm for row in rows])
    chosen = [row for row in rows if row.arm == arm]
    names = CellNames(row.cell_id for row in chosen)
    columns = (
        Column("cell", lambda row: names[row.cell_id]),
        *(RUN_COLUMNS[name] for name in ("verify steps", "alloc calls", "pages taken")),
        Column("pages returned", "counts.pages_returned", "count"),
        Column("calls / step", partial(_a_step, "alloc_calls"), "ratio"),
        Column("pages / step", partial(_a_step, "pages_allocated"), "ratio"),
    )
    title = f"Allocation ({', '.join(filter(None, (arm, names.shared)))})"
    return make_table(columns, chosen, name="allocation", title=title, remarks=(RETURNED,))


def _a_step(name: str, row: Row) -> float | None:
    return share(getattr(row.counts, name), row.counts.verify_steps)
