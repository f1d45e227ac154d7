"""A run beside the baseline that it is judged against."""

from functools import partial

from eaglebench.report.cell_names import CellNames
from eaglebench.report.document import ReportDocument
from eaglebench.report.phrases import first_few
from eaglebench.report.table import Column, Table, make_table
from eaglebench.stats.against import ArmAgainst

BASELINE = "against-baseline"
MOST_NAMED = 8


def baseline_table(document: ReportDocument) -> Table | None:
    """The baseline's length, this run's, the change and what changed; None without a baseline."""
    if not document.against:
        return None
    names = CellNames(row.cell_id for row in document.rows)
    columns = (
        Column("cell", lambda each: names[each.cell_id]),
        Column("arm", "arm", filter="arm"),
        Column("baseline", "before", "ratio"),
        Column("this run", "after", "ratio"),
        Column("change", "change", "change"),
        Column("questions that changed", _changed),
        Column("verdict", partial(_verdict, document), "verdict"),
    )
    title = f"Acceptance length against the baseline {document.judgement.baseline}"
    return make_table(columns, document.against, name=BASELINE, title=title)


def _changed(found: ArmAgainst) -> str:
    told = f"{len(found.changed)} of {found.num_common}"
    return f"{told}: {first_few(found.changed, MOST_NAMED)}" if found.changed else told


def _verdict(document: ReportDocument, found: ArmAgainst) -> str | None:
    place = (found.cell_id, found.arm)
    return next(
        (document.verdict_on(r) for r in document.rows if (r.cell_id, r.arm) == place), None
    )
