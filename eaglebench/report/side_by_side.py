"""Tables of two sides: two runs, an arm beside itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from eaglebench.report.phrases import cell_text, changed_counters
from eaglebench.report.table import Column, Table, make_table, read
from eaglebench.stats.difference import Difference
from eaglebench.stats.noise import WANTED_CHANGE, Noise
from eaglebench.stats.pairing import Tier

TIERS: tuple[Tier, ...] = ("identical", "matched", "diverged")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRow:
    """One cell and arm of the later run against the earlier one."""

    cell_id: str
    arm: str
    difference: Difference


def runs_pair_table(rows: Sequence[PairedRow], title: str, *, is_wide: bool) -> Table:
    """Lengths and tiers, and every exact counter that changed if there is room."""
    columns = [
        *(Column("cell", "cell_id"), Column("arm", "arm")),
        Column(
            "acceptance length", read("difference", _lengths), is_right=True, short="accept. length"
        ),
        Column("change", "difference.acceptance", "change"),
        *(Column(tier, read("difference", partial(_of_tier, tier)), "count") for tier in TIERS),
    ]
    if is_wide:
        changed = read("difference", lambda found: changed_counters(found) or "none")
        columns.append(Column("counters that changed", changed))
    return make_table(columns, rows, title=title)


def _lengths(difference: Difference) -> str:
    sides = difference.other_counts, difference.counts
    return " -> ".join(cell_text(counts.acceptance_length, "ratio") for counts in sides)


def _of_tier(tier: Tier, difference: Difference) -> int:
    return sum(pair.tier == tier for pair in difference.pairs)


class _Noise(NamedTuple):
    dtype: str
    noise: Noise


NOISE_COLUMNS = (
    *(Column("dtype", "dtype"), Column("cell", "noise.cell_id"), Column("arm", "noise.arm")),
    Column("passes", read("noise.lengths", lambda found: sum(n for _, n in found)), "count"),
    Column("distinct lengths", read("noise.lengths", len), "count"),
    Column("flipped questions", read("noise.flipped", len), "count"),
    Column("sigma a pair", "noise.ratio.sd", "share"),
    Column("smallest effect", "noise.ratio.mde", "share"),
    Column(f"pairs for {WANTED_CHANGE:.0%}", "noise.pairs_needed", "count"),
    Column("minutes", "noise.minutes_needed", "tenths"),
)


def noise_table(found: Iterable[tuple[str, Noise]]) -> Table:
    """What calibration found at each dtype, in each cell."""
    return make_table(NOISE_COLUMNS, (_Noise(*each) for each in found), title="A against A")
