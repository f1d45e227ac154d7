"""Two runs side by side: numbers of every cell and arm both have."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from eaglebench.report.phrases import SHARE, SHORT_SHARE, number
from eaglebench.report.terminal import WIDE
from eaglebench.stats.difference import Difference
from eaglebench.stats.metrics import COUNTERS, relative_change


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRow:
    """One cell and arm of the later run against the earlier one."""

    cell_id: str
    arm: str
    difference: Difference


def render_run_pair(rows: Sequence[PairedRow], console: Console, *, title: str) -> None:
    """Print lengths, tiers and every exact counter that changed."""
    table = Table(title=title, title_justify="left", pad_edge=False)
    for name in ("cell", "arm", "accept. length", "change", "identical", "matched", "diverged"):
        numeric = name not in {"cell", "arm"}
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    if console.width >= WIDE:
        table.add_column("counters that changed", overflow="fold")
    for row in rows:
        cells = [row.cell_id, row.arm, *_numbers(row.difference)]
        if console.width >= WIDE:
            cells.append(changed_counters(row.difference) or "none")
        table.add_row(*cells)
    console.print(table)
    if console.width < WIDE:
        for row in rows:
            changed = changed_counters(row.difference)
            if changed:
                console.print(f"{row.cell_id} {row.arm}: {changed}", highlight=False)


def changed_counters(difference: Difference) -> str:
    """`verify_steps 390 -> 394 (+1.0%)`, for every exact counter that is not the same."""
    parts = []
    for name in COUNTERS:
        before = getattr(difference.other_counts, name)
        after = getattr(difference.counts, name)
        if before is not None and after is not None and before != after:
            change = relative_change(before, after)
            share = f" ({change:{SHORT_SHARE}})" if before else ""
            parts.append(f"{name} {before} -> {after}{share}")
    return ", ".join(parts)


def _numbers(difference: Difference) -> list[str]:
    before, after = (
        counts.acceptance_length for counts in (difference.other_counts, difference.counts)
    )
    lengths = " -> ".join("-" if value is None else f"{value:.3f}" for value in (before, after))
    change = number(difference.acceptance, SHARE)
    tiers = [pair.tier for pair in difference.pairs]
    counted = [str(tiers.count(tier)) for tier in ("identical", "matched", "diverged")]
    return [lengths, change, *counted]
