"""Cells against cells: what page size, chunks, shapes and the like do, in one table."""

from functools import partial

from eaglebench.records.faults import FAULTS
from eaglebench.records.flags import flag_of
from eaglebench.records.knobs import CACHE_ARMS, base_arm
from eaglebench.report.cell_names import CellNames
from eaglebench.report.document import ReportDocument
from eaglebench.report.phrases import IDLE, SEEN, UNSEEN, cell_text, num_differing
from eaglebench.report.table import Column, Table, make_table, read
from eaglebench.stats.cells import ACROSS_CELLS, CellDifference
from eaglebench.stats.difference import Difference

EXACT = (
    "each cell stands against the first with the same draft shape, window and precision, on turns that "
    "both answered; nothing else may change drafts, so there every clear difference is a fault"
)
BY_RIGHT = "without a verdict: {} change drafts by right"
OTHERS = (
    "other drafts = verify steps with other proposals, of those that begin with the same tokens"
)


def cells_table(document: ReportDocument) -> Table | None:
    """Every cell against an earlier one in the same arm; None for a run of one cell."""
    found = document.cells
    if any(row.arm in CACHE_ARMS for row in document.rows):  # faults stand against these
        found = tuple(each for each in found if base_arm(each.arm) not in FAULTS)
    if not found:
        return None
    names = CellNames(row.cell_id for row in document.rows)
    others = dict.fromkeys(names[each.difference.against] for each in found)
    has_one = len(others) == 1
    columns = (
        Column("cell", lambda each: names[each.cell_id]),
        Column("arm", "arm", filter="arm"),
        Column("against", lambda each: names[each.difference.against], is_wide=has_one),
        Column(
            "acceptance length",
            read("difference", lengths_text),
            is_right=True,
            short="accept.\nlength",
        ),
        Column("change", "difference.acceptance", "change"),
        Column(
            "turns that differ",
            read("difference", num_differing),
            is_right=True,
            short="turns\ndiffer",
        ),
        Column("other drafts", _other_drafts, is_right=True, is_wide=True),
        Column("tier", _tier, is_wide=True),
        Column("verdict", partial(verdict_across, document), "verdict"),
    )
    title = f"Cells against {next(iter(others)) if has_one else 'cells'}, question by question in the same arm"
    title += f" ({names.shared})" if names.shared else ""
    free = dict.fromkeys(name for each in found if not each.is_exact for name in each.axes)
    remarks = [EXACT] if any(each.is_exact for each in found) else []
    remarks += [BY_RIGHT.format(", ".join(map(flag_of, free)))] if free else []
    return make_table(columns, found, name="cells", title=title, remarks=(*remarks, OTHERS))


def verdict_across(document: ReportDocument, found: CellDifference) -> str | None:
    """The verdict; of a planted fault whether it shows, and nothing of what differs by right."""
    if base_arm(found.arm) in FAULTS and found.is_exact and found.difference.pairs:
        return SEEN if found.has_faults else IDLE if found.idle else UNSEEN
    place = (found.cell_id, found.arm, ACROSS_CELLS)
    findings = document.judgement.findings
    verdict = next((f.verdict for f in findings if (f.cell_id, f.arm, f.metric) == place), None)
    return IDLE if verdict == "PASS" and found.idle else verdict


def lengths_text(found: Difference) -> str:
    """Both acceptance lengths, the other one first."""
    sides = found.other_counts, found.counts
    return " -> ".join(cell_text(counts.acceptance_length, "ratio") for counts in sides)


def _other_drafts(found: CellDifference) -> str:
    return f"{found.drafts.num_other} of {found.drafts.num_common}"


def _tier(found: CellDifference) -> str | None:
    return found.tier if found.difference.pairs else None
