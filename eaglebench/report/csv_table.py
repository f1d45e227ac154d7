"""Every cell and arm as a line of CSV, with what was measured."""

import csv
import io

from eaglebench.report.document import ReportDocument
from eaglebench.report.json_document import finite
from eaglebench.report.rows import Row
from eaglebench.report.run_key import run_key
from eaglebench.stats.acceptance import pool


def render_csv(document: ReportDocument) -> str:
    """Rows with the numbers in full; texts are quoted, what was not measured is empty."""
    stream = io.StringIO()
    key = run_key(document.run)
    writer = csv.DictWriter(
        stream,
        fieldnames=[*key, *_column_names()],
        # Quoting every text keeps line ends of any kind inside their field.
        quoting=csv.QUOTE_NONNUMERIC,
        lineterminator="\n",
    )
    writer.writeheader()
    for row in document.rows:
        writer.writerow({**key, **finite(row.as_dict())})
    return stream.getvalue()


def _column_names() -> list[str]:
    """Known without a row, so that the header does not depend on one."""
    nothing = Row(
        cell_id="",
        arm="",
        preallocation="",
        num_questions=0,
        num_asked=0,
        num_failed=0,
        counts=pool(()),
        by_position=(),
        speed=None,
        occupancy=None,
        differences=(),
    )
    return list(nothing.as_dict())
