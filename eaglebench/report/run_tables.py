"""Tables over several cells or arms, each only where a run has something for it."""

from eaglebench.report.allocation_table import allocation_table
from eaglebench.report.document import ReportDocument
from eaglebench.report.fault_table import fault_table
from eaglebench.report.sweep_tables import sweep_tables
from eaglebench.report.text_table import TextTable


def run_tables(document: ReportDocument) -> list[TextTable]:
    """Draft shapes, allocation, faults; nothing for a run without any of them."""
    found = [allocation_table(document.rows), fault_table(document)]
    return [*sweep_tables(document.sweeps), *(table for table in found if table is not None)]
