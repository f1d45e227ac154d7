"""Cells that differ in the draft shape alone: which is the fastest, against which, and how surely.

Counts are those of the first pass. Times are those of the passes that every cell has, so that a
machine that changed in a later pass favours nobody.

The fastest cell has the most tokens a second. It is told apart from another one if the throughput
ratio of the two over paired passes is above 1 by more than its half-width, at level `ALPHA` shared
out among the other cells (Bonferroni).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eaglebench.records.counters import Counters
from eaglebench.records.knobs import CACHE_ARMS, DraftKnobs
from eaglebench.records.measured import MeasuredBlock, MeasuredTurn
from eaglebench.stats.acceptance import (
    Speed,
    acceptance_by_position,
    pool,
    speed,
    split_ratio,
)
from eaglebench.stats.throughput import (
    ALPHA,
    RatioEstimate,
    estimate_ratio,
    log_rates,
    paired_log_ratios,
)

LEAST_PASSES = 2
"""One pass has no interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptCell:
    """One draft shape.

    Attributes:
        counts, by_position, speed: as in the run's rows; `speed` is None where nothing was timed.
        rate_half_width: one-sided half-width of ln(tokens a second); None for a single pass.
        ratio: throughput against the reference cell; None for that one and without a common pass.
    """

    cell_id: str
    draft: DraftKnobs
    counts: Counters
    by_position: tuple[float, ...]
    speed: Speed | None
    rate_half_width: float | None
    ratio: RatioEstimate | None

    @property
    def step_ms(self) -> float | None:
        """Decode time of one verify step, in milliseconds."""
        rate = self.speed.step_rate if self.speed else None
        return 1000 / rate if rate else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fastest:
    """The cell with the most tokens a second.

    Attributes:
        cell: which one.
        rival: the best cell of the other kind (a chain for a tree, a tree for a chain), or the next
            best cell where all are of one kind.
        factor: its tokens a second over the rival's.
        log_factors: ln of the parts of that: acceptance (al_sglang), step rate, decode share.
        tied: cells it is not told apart from; all others where there are too few passes.
        passes: the fewest that it shares with another cell.
    """

    cell: SweptCell
    rival: SweptCell
    factor: float
    log_factors: tuple[float, float, float] | None
    tied: tuple[SweptCell, ...]
    passes: int

    @property
    def has_interval(self) -> bool:
        """Whether there were enough passes to tell anything apart."""
        return self.passes >= LEAST_PASSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Draft shapes in one setting of everything else.

    Attributes:
        setting: the cells' names without the draft shape.
        arm: the one looked at.
        cells: in their order, at least two.
        reference: the best chain, or the first cell where no chain was timed.
        fastest: None where fewer than two cells were timed.
        plain: the cell that drafts nothing; None where there is none.
        gains: throughput of each cell against `plain`, over the passes that both have.
    """

    setting: str
    arm: str
    cells: tuple[SweptCell, ...]
    reference: SweptCell
    fastest: Fastest | None
    plain: SweptCell | None = None
    gains: Mapping[str, RatioEstimate | None] = field(default_factory=dict)

    @property
    def gain(self) -> RatioEstimate | None:
        """The fastest cell's throughput against plain decoding."""
        return self.gains.get(self.fastest.cell.cell_id) if self.fastest else None

    @property
    def chains(self) -> tuple[SweptCell, ...]:
        """Cells with one branch, the shortest first."""
        chains = [cell for cell in self.cells if cell.draft.is_chain]
        return tuple(sorted(chains, key=lambda cell: cell.draft.num_steps))


def make_sweeps(turns: Sequence[MeasuredTurn], blocks: Sequence[MeasuredBlock]) -> list[Sweep]:
    """Every setting in which more than one draft shape ran."""
    settings: dict[str, dict[str, DraftKnobs]] = {}
    for turn in turns:
        settings.setdefault(_setting(turn), {})[turn.cell_id] = turn.knobs.draft
    arm = main_arm([turn.arm for turn in turns])
    turns = [turn for turn in turns if turn.arm == arm and turn.pass_index == 0]
    blocks = [block for block in blocks if block.arm == arm]
    return [
        _sweep(setting, arm, shapes, turns, blocks)
        for setting, shapes in settings.items()
        if len(shapes) > 1
    ]


def main_arm(arms: Sequence[str]) -> str:
    """The arm that stands for a cell: `radix`, or the first one there is; empty without any."""
    return next((arm for arm in (*CACHE_ARMS, *arms) if arm in arms), "")


def _setting(turn: MeasuredTurn) -> str:
    return turn.cell_id.replace(f"-{turn.knobs.draft.name}", "")


def _sweep(
    setting: str,
    arm: str,
    shapes: dict[str, DraftKnobs],
    turns: Sequence[MeasuredTurn],
    blocks: Sequence[MeasuredBlock],
) -> Sweep:
    timed = _common_passes([[b for b in blocks if b.cell_id == cell_id] for cell_id in shapes])
    by_cell = dict(zip(shapes, timed, strict=True))
    speeds = {cell_id: speed(mine) for cell_id, mine in by_cell.items()}
    chains = [cell_id for cell_id, draft in shapes.items() if draft.is_chain and draft.num_steps]
    reference = _best(chains, speeds) or next(iter(shapes))
    cells = {
        cell_id: _cell(
            cell_id,
            draft,
            [turn for turn in turns if turn.cell_id == cell_id],
            by_cell[cell_id],
            () if cell_id == reference else by_cell[reference],
        )
        for cell_id, draft in shapes.items()
    }
    plain = next((cell_id for cell_id, draft in shapes.items() if not draft.num_steps), None)
    return Sweep(
        setting=setting,
        arm=arm,
        cells=tuple(cells.values()),
        reference=cells[reference],
        fastest=_fastest(cells, by_cell),
        plain=None if plain is None else cells[plain],
        gains={
            name: estimate_ratio(paired_log_ratios(mine, by_cell[plain]))
            for name, mine in by_cell.items()
            if plain is not None and name != plain
        },
    )


def _common_passes(cells: Sequence[Sequence[MeasuredBlock]]) -> list[list[MeasuredBlock]]:
    """Blocks of the passes that all cells with any block have."""
    passes = [{block.pass_index for block in blocks} for blocks in cells if blocks]
    common = set.intersection(*passes) if passes else set()
    return [[block for block in blocks if block.pass_index in common] for blocks in cells]


def _best(cell_ids: Sequence[str], speeds: Mapping[str, Speed | None]) -> str | None:
    """The cell with the most tokens a second; None where none was timed."""
    rates = {name: rate.tokens_per_s for name in cell_ids if (rate := speeds[name]) is not None}
    return max(rates, key=rates.__getitem__, default=None)


def _cell(
    cell_id: str,
    draft: DraftKnobs,
    turns: Sequence[MeasuredTurn],
    blocks: Sequence[MeasuredBlock],
    reference: Sequence[MeasuredBlock],
) -> SweptCell:
    rate = estimate_ratio(log_rates(blocks))
    return SweptCell(
        cell_id=cell_id,
        draft=draft,
        counts=pool(turns),
        by_position=acceptance_by_position(turns),
        speed=speed(blocks),
        rate_half_width=rate.half_width if rate else None,
        ratio=estimate_ratio(paired_log_ratios(blocks, reference)),
    )


def _fastest(cells: dict[str, SweptCell], blocks: dict[str, list[MeasuredBlock]]) -> Fastest | None:
    timed = {name: cell.speed for name, cell in cells.items() if cell.speed is not None}
    first = _best(list(timed), timed)
    others = [name for name in timed if name != first]
    if first is None or not others:
        return None
    is_chain = cells[first].draft.is_chain
    other_kind = [name for name in others if cells[name].draft.is_chain != is_chain]
    rival = _best(other_kind or others, timed)
    assert rival is not None  # it is one of the others, which were timed
    level = ALPHA / len(others)
    ratios = {
        name: estimate_ratio(paired_log_ratios(blocks[first], blocks[name]), level)
        for name in others
    }
    return Fastest(
        cell=cells[first],
        rival=cells[rival],
        factor=timed[first].tokens_per_s / timed[rival].tokens_per_s,
        log_factors=split_ratio(cells[first].speed, cells[rival].speed),
        tied=tuple(cells[name] for name in others if not _is_above(ratios[name])),
        passes=min(ratio.passes if ratio else 0 for ratio in ratios.values()),
    )


def _is_above(ratio: RatioEstimate | None) -> bool:
    """Whether a throughput ratio is above 1 by more than its half-width."""
    return ratio is not None and ratio.half_width is not None and ratio.log_ratio > ratio.half_width
