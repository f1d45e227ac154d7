"""A metric over runs as a table."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from eaglebench.report.cell_names import CellNames
from eaglebench.report.table import Column, Table, make_table

MINUTE = len("2026-11-30T12:34")
"""So much of a time is shown."""
DECIMALS = ("al", "throughput")
"""Metrics that are no counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """A metric of one cell and arm in one run.

    Attributes:
        run_id, started: which run, and when.
        commit: of the code, with `-dirty` where it had changes.
        suite, cell_id, arm: what was measured.
        value: the metric; None where the run did not measure it.
        change: relative to the run of the same work before it; None where there is none.
        is_trusted: whether it raised no doubt that takes results away.
    """

    run_id: str
    started: str
    commit: str
    suite: str
    cell_id: str
    arm: str
    value: float | None
    change: float | None
    is_trusted: bool


def history_table(rows: Sequence[HistoryRow], metric: str) -> Table:
    """A line a run, cell and arm; the change is against the run of the same work before it."""
    form = "ratio" if metric in DECIMALS else "count"
    cells = CellNames(row.cell_id for row in rows)
    several = [Column("cell", lambda row: cells[row.cell_id])] if len(cells.cells) > 1 else []
    columns = (
        Column("run", "run_id", is_wide=True),
        Column("started", lambda row: row.started[:MINUTE].replace("T", " ")),
        Column("commit", "commit"),
        *several,
        *(
            Column("arm", "arm"),
            Column(metric, "value", form),
            Column("change", "change", "change"),
        ),
        *([] if all(row.is_trusted for row in rows) else [Column("remark", _remark)]),
    )
    remark = "a change is against the run of the same work, questions and environment before it"
    title = f"{metric} over runs" + (f" - {cells.title}" if cells.title else "")
    return make_table(columns, rows, title=title, remarks=(remark,))


def _remark(row: HistoryRow) -> str:
    return "" if row.is_trusted else "not to be trusted"


def history_csv(rows: Sequence[HistoryRow]) -> str:
    """The same with numbers in full."""
    stream = io.StringIO()
    names = [each.name for each in fields(HistoryRow)]
    writer = csv.DictWriter(stream, names, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return stream.getvalue()
