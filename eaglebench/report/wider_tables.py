"""Tables over several cells or arms, each only where a run has something for it."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from eaglebench.records.counters import share
from eaglebench.records.faults import FAULTS
from eaglebench.records.knobs import EngineKnobs, base_arm
from eaglebench.report.cell_names import short_names
from eaglebench.report.cell_tables import cells_table
from eaglebench.report.document import ReportDocument
from eaglebench.report.phrases import IDLE, SEEN, SEEN_IN_DRAFTS, UNSEEN, num_differing
from eaglebench.report.row_tables import RUN_COLUMNS, length_column
from eaglebench.report.rows import Row
from eaglebench.report.sweep_tables import sweep_tables
from eaglebench.report.table import Column, Table, make_table, read
from eaglebench.stats.difference import Difference
from eaglebench.stats.exercise import first_pass, why_idle
from eaglebench.stats.pairing import FAULTS as CLEAR
from eaglebench.stats.prefix import OtherDrafts, count_other_drafts
from eaglebench.stats.sweep import main_arm

RETURNED = (
    "pages returned = given back by the requests themselves, not those that the prefix cache took "
    "over; prompts are counted in"
)
LEGEND = (
    "p = chance of so many more verify steps without a fault (paired sign-flip); other drafts = verify "
    "steps with other proposals, of those that begin with the same tokens"
)


def wider_tables(document: ReportDocument) -> list[Table]:
    """Draft shapes, cells against cells, allocation, faults; nothing for a run without any of them."""
    found = [cells_table(document), allocation_table(document.rows), fault_table(document)]
    return [*sweep_tables(document.sweeps), *(table for table in found if table is not None)]


def allocation_table(rows: Sequence[Row]) -> Table | None:
    """What preallocation does to the allocator, a row a cell, the same arm in each.

    None where no cell takes pages ahead of need.
    """
    if all(row.preallocation == EngineKnobs().preallocation for row in rows):
        return None
    arm = main_arm([row.arm for row in rows])
    chosen = [row for row in rows if row.arm == arm]
    cell, shared = _short_cell([row.cell_id for row in chosen])
    columns = (
        cell,
        *(RUN_COLUMNS[name] for name in ("verify steps", "alloc calls", "pages taken")),
        Column("pages returned", "counts.pages_returned", "count"),
        Column("calls / step", partial(_a_step, "alloc_calls"), "ratio"),
        Column("pages / step", partial(_a_step, "pages_allocated"), "ratio"),
    )
    title = f"Allocation ({', '.join(filter(None, (arm, shared)))})"
    return make_table(columns, chosen, name="allocation", title=title, remarks=(RETURNED,))


def _short_cell(cells: Sequence[str]) -> tuple[Column, str]:
    """A column of names short enough, and what they share."""
    names, shared = short_names(cells)
    short = dict(zip(cells, names, strict=True))
    return Column("cell", lambda row: short[row.cell_id]), shared


def _a_step(name: str, row: Row) -> float | None:
    return share(getattr(row.counts, name), row.counts.verify_steps)


class _Fault(NamedTuple):
    """A fault arm against the same cache without the fault, or `no-cache` where that did not run."""

    row: Row
    difference: Difference | None
    drafts: OtherDrafts | None
    idle: str | None


def fault_shows(fault: _Fault) -> str | None:
    """Whether a planted fault is seen in this cell; None where it has nothing to stand against."""
    if fault.difference is None or not fault.difference.pairs:
        return None
    if any(pair.kind in CLEAR for pair in fault.difference.pairs):
        return SEEN
    if fault.idle:
        return IDLE
    return SEEN_IN_DRAFTS if fault.drafts and fault.drafts.num_other else UNSEEN


def fault_table(document: ReportDocument) -> Table | None:
    """What each planted fault costs, a row a cell and fault arm; None where there is no fault."""
    faults = planted_faults(document)
    if not faults:
        return None
    cells = list(dict.fromkeys(fault.row.cell_id for fault in faults))
    cell, shared = _short_cell(cells)
    columns = (
        *([Column("cell", read("row", cell.of))] if len(cells) > 1 else []),
        Column("fault", "row.arm"),
        Column("shows", fault_shows),
        length_column("row.counts.acceptance_length"),
        Column("change", "difference.acceptance", "change"),
        Column("turns that differ", read("difference", num_differing), is_right=True),
        Column("p", "difference.p_value", "p"),
        Column("other drafts", read("drafts", _other), is_right=True),
    )
    shown = {base_arm(fault.row.arm) for fault in faults}
    told = [
        f"{name}: {fault.what} ({', '.join(fault.issues)}); it shows when {fault.shows_when}"
        for name, fault in FAULTS.items()
        if name in shown
    ]
    return make_table(
        columns,
        faults,
        name="faults",
        title=_fault_title(faults, shared if len(cells) > 1 else cells[0]),
        remarks=(*told, LEGEND),
    )


def planted_faults(document: ReportDocument) -> list[_Fault]:
    """Every fault arm of every cell."""
    return [_fault(document, row) for row in document.rows if base_arm(row.arm) in FAULTS]


def _fault(document: ReportDocument, row: Row) -> _Fault:
    found = row.other_difference or row.difference
    if found is None:
        return _Fault(row, None, None, None)
    turns = document.run.turns
    mine, theirs = (first_pass(turns, row.cell_id, arm) for arm in (row.arm, found.against))
    drafts = count_other_drafts(mine, theirs)
    return _Fault(row, found, drafts, why_idle(row.arm, mine, row.counts))


def _other(drafts: OtherDrafts) -> str:
    return f"{drafts.num_other} of {drafts.num_common}"


def _fault_title(faults: Sequence[_Fault], where: str) -> str:
    """Against which arms, and in which cells."""
    names = sorted({fault.difference.against for fault in faults if fault.difference})
    against = f" against {' or '.join(names)}" if names else ""
    return f"What known faults cost{against}" + (f" ({where})" if where else "")
