"""Every cell and arm as a line of CSV, with what was measured."""

import csv
import io

from eaglebench.report.cell_tables import verdict_across
from eaglebench.report.document import ReportDocument
from eaglebench.report.json_document import finite
from eaglebench.report.row_tables import values_table
from eaglebench.report.run_key import run_key
from eaglebench.stats.cells import CellDifference

ACROSS = ("other_cell", "change_across_cells", "verdict_across_cells")
"""Columns on cells against cells; empty for a cell that others are held against."""


def render_csv(document: ReportDocument) -> str:
    """Rows with the numbers in full; texts are quoted, what was not measured is empty."""
    stream = io.StringIO()
    key, table = run_key(document.run), values_table(document.rows)
    across = {(each.cell_id, each.arm): each for each in document.cells}
    beside = [_across(document, across.get(place)) for place in document.places]
    # Quoting every text keeps line ends of any kind inside their field.
    writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([*key, *(column.heading for column in table.columns), *ACROSS])
    writer.writerows(
        [*key.values(), *finite(row), *cells] for row, cells in zip(table.rows, beside, strict=True)
    )
    return stream.getvalue()


def _across(document: ReportDocument, found: CellDifference | None) -> list[str | float | None]:
    if found is None:
        return [None] * len(ACROSS)
    change = found.difference.acceptance
    return [found.difference.against, change, verdict_across(document, found)]
