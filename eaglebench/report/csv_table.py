"""Every cell and arm as a line of CSV, with what was measured."""

import csv
import io

from eaglebench.report.document import ReportDocument
from eaglebench.report.json_document import finite
from eaglebench.report.row_tables import values_table
from eaglebench.report.run_key import run_key


def render_csv(document: ReportDocument) -> str:
    """Rows with the numbers in full; texts are quoted, what was not measured is empty."""
    stream = io.StringIO()
    key, table = run_key(document.run), values_table(document.rows)
    # Quoting every text keeps line ends of any kind inside their field.
    writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([*key, *(column.heading for column in table.columns)])
    writer.writerows([*key.values(), *finite(row)] for row in table.rows)
    return stream.getvalue()
