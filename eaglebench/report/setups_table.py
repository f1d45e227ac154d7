"""Several runs in one table: what each was set to, what it accepts, and what that is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp

from eaglebench.records.verdict import Verdict
from eaglebench.report.cell_names import CellNames
from eaglebench.report.phrases import Interval, cell_text, several
from eaglebench.report.table import Column, Table, make_table
from eaglebench.stats.bootstrap import LEAST_QUESTIONS, LengthInterval
from eaglebench.stats.sweep import main_arm
from eaglebench.stats.throughput import RatioEstimate

NAME = "setups"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupRow:
    """A cell and arm of one of the runs.

    Attributes:
        run_id: which run.
        setup: what tells the run from the others, by name.
        cell_id, arm: what was measured.
        length: acceptance length over all its questions; None without a verify step.
        change: of the length against the first run, over the questions that both answered; None for
            the first run itself and for a cell that it lacks.
        others: the same on other prompts; None where too few questions were asked.
        alike: turns with the same tokens in the same steps as in the first run, of how many.
        verdict: on the change.
        tokens_per_s: delivered; None where nothing was timed.
        gain: throughput over plain decoding in the same run; None where that did not run.
    """

    run_id: str
    setup: Mapping[str, str] = field(default_factory=dict)
    cell_id: str
    arm: str
    length: float | None
    change: float | None = None
    others: LengthInterval | None = None
    alike: tuple[int, int] | None = None
    verdict: Verdict | None = None
    tokens_per_s: float | None
    gain: RatioEstimate | None = None

    @property
    def name(self) -> str:
        """What the run is called beside the others."""
        return ", ".join(self.setup.values()) or self.run_id


def setups_table(rows: Sequence[SetupRow], *, is_judged: bool) -> Table:
    """A line a run and cell, in the arm that stands for them, against the first run.

    Args:
        rows: of at least two runs.
        is_judged: whether the first one is what the others are held against, and not only a sibling.
    """
    arm = main_arm([row.arm for row in rows])
    rows = [row for row in rows if row.arm == arm]
    cells = CellNames(row.cell_id for row in rows)
    setup = ", ".join(name.replace("_", "-") for name in rows[0].setup)
    gained = any(row.gain for row in rows)
    claimed = any(row.others for row in rows)
    not_alike = not any(row.alike and row.alike[0] for row in rows)
    columns = [
        Column(setup or "run", "name"),
        *([Column("cell", lambda row: cells[row.cell_id])] if len(cells.cells) > 1 else []),
        Column("acceptance length", "length", "ratio", short="accept.\nlength"),
        Column("against the first", "change", "change", short="against\nthe first"),
        Column("turns alike", _alike, is_right=True, short="turns\nalike", is_wide=not_alike),
        *([Column("on other prompts", _others, is_right=True)] if claimed else []),
        Column("token/s", "tokens_per_s", "brief", is_wide=True),
        *(
            [Column("over no speculation", _gain, "factor", short="over no\nspeculation")]
            if gained
            else []
        ),
        *([Column("verdict", "verdict", "verdict")] if is_judged else []),
    ]
    runs = {row.run_id: row.name for row in rows}
    title = f"{len(runs)} runs side by side, {arm}"
    title += f" - {cells.title}" if cells.title else ""
    remarks = [f"{name}: {run_id}" for run_id, name in runs.items() if setup]
    if not claimed:
        remarks.append(f"of other prompts nothing is claimed below {LEAST_QUESTIONS} questions")
    return make_table(columns, rows, name=NAME, title=title, remarks=remarks)


def setups_answers(rows: Sequence[SetupRow]) -> list[str]:
    """Which one accepts most, and which one gains most over plain decoding, a sentence each."""
    arm = main_arm([row.arm for row in rows])
    cells = CellNames(row.cell_id for row in rows)
    mine = [row for row in rows if row.arm == arm]
    lines = []
    known = [row for row in mine if row.length is not None]
    if known:
        best = max(known, key=lambda row: row.length or 0.0)
        tied = [row for row in known if row.length == best.length]
        where = "all of them" if len(tied) == len(known) > 1 else _place(best, cells)
        lines.append(f"accepted most: {where}, {cell_text(best.length, 'ratio')}{_claim(best)}")
    gained = [row for row in mine if row.gain is not None]
    if gained:
        best = max(gained, key=_factor)
        passes = several(best.gain.passes, "pass") if best.gain else ""
        factor = cell_text(_gain(best), "factor")
        lines.append(f"gains most over no speculation: {_place(best, cells)}, {factor} ({passes})")
    return lines


def _place(row: SetupRow, cells: CellNames) -> str:
    return f"{row.name} {cells[row.cell_id]}" if len(cells.cells) > 1 else row.name


def _claim(row: SetupRow) -> str:
    if row.change is None:
        return ""
    text = f", {cell_text(row.change, 'change')} against the first on the same questions"
    return f"{text}; on other prompts {_others(row)}" if row.others else text


def _others(row: SetupRow) -> str | None:
    if row.others is None:
        return None
    low, high = (cell_text(bound, "change") for bound in (row.others.low, row.others.high))
    return f"{low} to {high}"


def _alike(row: SetupRow) -> str | None:
    return None if row.alike is None else f"{row.alike[0]} of {row.alike[1]}"


def _factor(row: SetupRow) -> float:
    return exp(row.gain.log_ratio) if row.gain else 0.0


def _gain(row: SetupRow) -> Interval | None:
    return Interval(_factor(row), row.gain.half_width) if row.gain else None
