"""Planted faults: whether each is seen in a cell, and what it costs there."""

from collections.abc import Sequence
from typing import NamedTuple

from eaglebench.records.faults import FAULTS
from eaglebench.records.knobs import base_arm
from eaglebench.report.cell_names import CellNames
from eaglebench.report.document import ReportDocument
from eaglebench.report.phrases import IDLE, SEEN, SEEN_IN_DRAFTS, UNSEEN, num_differing
from eaglebench.report.row_tables import length_column
from eaglebench.report.rows import Row
from eaglebench.report.table import Column, Table, make_table, read
from eaglebench.stats.difference import Difference
from eaglebench.stats.exercise import first_pass, why_idle
from eaglebench.stats.pairing import FAULTS as CLEAR
from eaglebench.stats.prefix import OtherDrafts, count_other_drafts

LEGEND = (
    "p = chance of so many more verify steps without a fault (paired sign-flip); other drafts = verify "
    "steps with other proposals, of those that begin with the same tokens"
)


class PlantedFault(NamedTuple):
    """A fault arm against the same cache without the fault, or `no-cache` where that did not run."""

    row: Row
    difference: Difference | None
    drafts: OtherDrafts | None
    idle: str | None


def fault_shows(fault: PlantedFault) -> str | None:
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
    names = CellNames(fault.row.cell_id for fault in faults)
    columns = (
        *([Column("cell", lambda fault: names[fault.row.cell_id])] if len(names.cells) > 1 else []),
        Column("fault", "row.arm"),
        Column("shows", fault_shows),
        length_column("row.counts.acceptance_length"),
        Column("change", "difference.acceptance", "change"),
        Column(
            "turns that differ",
            read("difference", num_differing),
            is_right=True,
            short="turns\ndiffer",
        ),
        Column("p", "difference.p_value", "p", is_wide=True),
        Column("other drafts", read("drafts", _other), is_right=True, is_wide=True),
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
        title=_fault_title(faults, names.title),
        remarks=(*told, LEGEND),
    )


def planted_faults(document: ReportDocument) -> list[PlantedFault]:
    """Every fault arm of every cell."""
    return [planted_fault(document, row) for row in document.rows if base_arm(row.arm) in FAULTS]


def planted_fault(document: ReportDocument, row: Row) -> PlantedFault:
    """A fault arm and what it stands against."""
    found = row.other_difference or row.difference
    if found is None:
        return PlantedFault(row, None, None, None)
    turns = document.run.turns
    mine, theirs = (first_pass(turns, row.cell_id, arm) for arm in (row.arm, found.against))
    drafts = count_other_drafts(mine, theirs)
    return PlantedFault(row, found, drafts, why_idle(row.arm, mine, row.counts))


def _other(drafts: OtherDrafts) -> str:
    return f"{drafts.num_other} of {drafts.num_common}"


def _fault_title(faults: Sequence[PlantedFault], where: str) -> str:
    """Against which arms, and in which cells."""
    names = sorted({fault.difference.against for fault in faults if fault.difference})
    against = f" against {' or '.join(names)}" if names else ""
    return f"What known faults cost{against}" + (f" ({where})" if where else "")
