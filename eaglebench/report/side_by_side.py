"""Tables of two sides: two runs, an arm beside itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from eaglebench.report.cell_names import CellNames
from eaglebench.report.phrases import cell_text, changed_counters
from eaglebench.report.table import Column, Table, make_table, read
from eaglebench.stats.bootstrap import LengthInterval
from eaglebench.stats.difference import Difference
from eaglebench.stats.noise import WANTED_CHANGE, Noise
from eaglebench.stats.pairing import Tier

TIERS: tuple[Tier, ...] = ("identical", "matched", "diverged")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRow:
    """One cell and arm of the later run against the earlier one.

    `interval` is what that says of other prompts; None where too few questions were asked. `rates` are
    tokens a second of both, where they were timed in turns.
    """

    cell_id: str
    arm: str
    difference: Difference
    interval: LengthInterval | None = None
    rates: tuple[float, float] | None = None


def runs_pair_table(rows: Sequence[PairedRow], title: str) -> Table:
    """Lengths and tiers, cells by what varies; under it every exact counter that changed."""
    cells = CellNames(row.cell_id for row in rows)
    title += f" - {cells.title}" if cells.title else ""
    columns = [
        *([Column("cell", lambda row: cells[row.cell_id])] if len(cells.cells) > 1 else []),
        Column("arm", "arm"),
        Column(
            "acceptance length", read("difference", _lengths), is_right=True, short="accept. length"
        ),
        Column("change", "difference.acceptance", "change"),
        *([Column("token/s", _rates, is_right=True)] if any(row.rates for row in rows) else []),
        *(Column(tier, read("difference", partial(_of_tier, tier)), "count") for tier in TIERS),
    ]
    changed = [
        f"{cells[row.cell_id]} {row.arm}: {text}" if len(cells.cells) > 1 else f"{row.arm}: {text}"
        for row in rows
        if (text := changed_counters(row.difference))
    ]
    return make_table(columns, rows, title=title, remarks=changed)


def _lengths(difference: Difference) -> str:
    sides = difference.other_counts, difference.counts
    return " -> ".join(cell_text(counts.acceptance_length, "ratio") for counts in sides)


def _rates(row: PairedRow) -> str | None:
    return None if row.rates is None else " -> ".join(cell_text(r, "brief") for r in row.rates)


def _of_tier(tier: Tier, difference: Difference) -> int:
    return sum(pair.tier == tier for pair in difference.pairs)


class _Noise(NamedTuple):
    name: str
    noise: Noise


NOISE_COLUMNS = (
    Column("passes", read("noise.lengths", lambda found: sum(n for _, n in found)), "count"),
    Column("distinct lengths", read("noise.lengths", len), "count", short="lengths"),
    Column("flipped questions", read("noise.flipped", len), "count", short="flips"),
    Column("sigma a pair", "noise.ratio.sd", "share", short="sigma"),
    Column("smallest effect", "noise.ratio.mde", "share", short="smallest\neffect"),
    Column(
        f"passes for {WANTED_CHANGE:.0%}",
        "noise.pairs_needed",
        "count",
        short=f"passes\nfor {WANTED_CHANGE:.0%}",
    ),
    Column("minutes", "noise.minutes_needed", "tenths"),
)
NOISE_LEGEND = (
    (
        "lengths, flips = distinct acceptance lengths and questions that differ between passes of the "
        "same thing; sigma = scatter of a pass against its twin; smallest effect = what so many passes "
        f"show four times in five; passes for {WANTED_CHANGE:.0%} = of each of two runs, minutes = for "
        "both arms of one of them"
    ),
    (
        "runs differ as a whole too: a baseline of several knows by how much (baseline save --runs 10); "
        "more questions make a pass steadier"
    ),
)


def noise_table(found: Sequence[tuple[str, Noise]]) -> Table:
    """What calibration found at each dtype, in each cell."""
    names = noise_names(found)
    items = [_Noise(name, noise) for name, (_, noise) in zip(names, found, strict=True)]
    one = f": {names[0]}" if len(names) == 1 else ""
    columns = NOISE_COLUMNS if one else (Column("where", "name"), *NOISE_COLUMNS)
    return make_table(columns, items, title=f"A against A{one}", remarks=NOISE_LEGEND)


def noise_names(found: Sequence[tuple[str, Noise]]) -> list[str]:
    """Dtype, cell and arm of each, in as few words as tell them apart; all of a single one."""
    cells = CellNames(noise.cell_id for _, noise in found)
    whole = [(dtype, cells[noise.cell_id], noise.arm) for dtype, noise in found]
    kept = [n for n in range(3) if len(whole) == 1 or len({name[n] for name in whole}) > 1]
    return [" ".join(name[n] for n in kept) for name in whole]
