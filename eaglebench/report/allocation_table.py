"""What preallocation does to the allocator: how often it is asked, and what comes back."""

from collections.abc import Sequence

from eaglebench.records.counters import share
from eaglebench.records.knobs import EngineKnobs
from eaglebench.report.cell_names import short_names
from eaglebench.report.phrases import number
from eaglebench.report.rows import Row
from eaglebench.report.text_table import TextTable
from eaglebench.stats.sweep import main_arm

RETURNED = (
    "pages returned = given back by the requests themselves, not those that the prefix cache took "
    "over; prompts are counted in"
)


def allocation_table(rows: Sequence[Row]) -> TextTable | None:
    """One row a cell, the same arm in each; None where no cell takes pages ahead of need."""
    if all(row.preallocation == EngineKnobs().preallocation for row in rows):
        return None
    arm = main_arm([row.arm for row in rows])
    chosen = [row for row in rows if row.arm == arm]
    names, shared = short_names([row.cell_id for row in chosen])
    columns = (
        *("cell", "verify steps", "alloc calls", "pages taken", "pages returned"),
        *("calls / step", "pages / step"),
    )
    return TextTable(
        id="allocation",
        caption=f"Allocation ({', '.join(filter(None, (arm, shared)))})",
        columns=columns,
        rows=tuple((name, *_numbers(row)) for name, row in zip(names, chosen, strict=True)),
        alignment="l" + "r" * (len(columns) - 1),
        remarks=(RETURNED,),
    )


def _numbers(row: Row) -> tuple[str, ...]:
    counts = row.counts
    return (
        number(counts.verify_steps, "d"),
        number(counts.alloc_calls, "d"),
        number(counts.pages_allocated, "d"),
        number(counts.pages_returned, "d"),
        _share(counts.alloc_calls, counts.verify_steps),
        _share(counts.pages_allocated, counts.verify_steps),
    )


def _share(part: int | None, whole: int | None) -> str:
    return number(share(part, whole), ".3f")
