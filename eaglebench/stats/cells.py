"""Cells against cells: each arm of a cell against the same arm of a cell before it.

The engine is exact, so page size, chunks, preallocation, the order of eviction and the number of
requests at a time change no draft. What does change drafts by right is the draft shape, the window
and the precision. A cell is held against the first one that drafts by the same settings, where a
difference has a cause; the first of each such group against the first cell of all, where it is no
fault.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.measured import MeasuredBlock, MeasuredTurn
from eaglebench.stats.difference import Difference, Side, make_difference, sides_of
from eaglebench.stats.exercise import why_axes_idle
from eaglebench.stats.metrics import ACCEPTANCE
from eaglebench.stats.pairing import FAULTS, NOT_PAIRED, Tier, farthest_tier, pair_turns
from eaglebench.stats.prefix import OtherDrafts, count_other_drafts
from eaglebench.stats.tau import Tau
from eaglebench.stats.throughput import estimate_ratio, paired_log_ratios

SHAPES_DRAFTS = ("num_steps", "eagle_topk", "num_draft_tokens", "sliding_window")
"""Knobs that change what is drafted; all others must not."""
ACROSS_CELLS = f"{ACCEPTANCE} across cells"
"""The metric of verdicts on them."""
_SAME_ARM = "arm"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDifference:
    """One arm of a cell against the same arm of another cell, over the turns that both answered.

    Attributes:
        cell_id, arm: what is looked at; `difference.against` is the other cell.
        axes: knobs in which the two cells differ.
        is_exact: whether none of them changes drafts by right.
        drafts: verify steps with other drafts, of those that begin with the same tokens.
        num_left_out: turns that ask something else, failed, or follow another answer.
        idle: why nothing could have differed, where that is known.
        difference: question by question.
    """

    cell_id: str
    arm: str
    axes: tuple[str, ...]
    is_exact: bool
    drafts: OtherDrafts
    num_left_out: int
    idle: str | None
    difference: Difference

    @property
    def tier(self) -> Tier:
        """Of the turn that can be compared least."""
        return farthest_tier(self.difference.pairs)

    @property
    def has_faults(self) -> bool:
        """Whether a turn parts where the choice was clear."""
        return any(pair.kind in FAULTS for pair in self.difference.pairs)


def compare_cells(
    turns: Sequence[MeasuredTurn], blocks: Sequence[MeasuredBlock], tau: Tau
) -> list[CellDifference]:
    """Every cell but the first in each arm, in the order of the run; none for a single cell."""
    sides = sides_of((turn for turn in turns if turn.pass_index == 0), blocks)
    first: dict[str, str] = {}
    alike: dict[tuple[str, object], str] = {}
    found = []
    for (cell_id, arm), mine in sides.items():
        settings = (arm, _drafting(mine.turns[0]))
        other = alike.setdefault(settings, cell_id)
        if other == cell_id:
            other = first.setdefault(arm, cell_id)
        else:
            first.setdefault(arm, cell_id)
        if other != cell_id:
            found.append(_compare((cell_id, arm), mine, sides[other, arm], other, tau))
    return found


def _drafting(turn: MeasuredTurn) -> tuple[object, ...]:
    """All that may change a draft."""
    knobs = (getattr(turn.knobs, name) for name in SHAPES_DRAFTS)
    return (*knobs, turn.window, turn.dtype, turn.device)


def _compare(
    key: tuple[str, str], mine: Side, theirs: Side, other: str, tau: Tau
) -> CellDifference:
    """The difference on what is common; a pair that has nothing in common is counted alone."""
    pairs = pair_turns(mine.turns, theirs.turns, tau)
    common = {(p.question_id, p.turn) for p in pairs if p.kind not in NOT_PAIRED}
    shared, their_shared = (_only(side, common) for side in (mine, theirs))
    ratio = estimate_ratio(paired_log_ratios(mine.blocks, theirs.blocks))
    one, two = mine.turns[0], theirs.turns[0]
    axes = _axes(one.knobs, two.knobs)
    reached = [(side.turns, side.counts) for side in (mine, theirs)]
    measured = sum(turn.is_measured for turn in mine.turns)
    return CellDifference(
        cell_id=key[0],
        arm=key[1],
        axes=axes,
        is_exact=_drafting(one) == _drafting(two),
        drafts=count_other_drafts(shared.turns, their_shared.turns),
        num_left_out=measured - len(common),
        idle=why_axes_idle(key[1], axes, *reached),
        difference=make_difference(shared, their_shared, other, tau, ratio),
    )


def _only(side: Side, common: set[tuple[str, int]]) -> Side:
    kept = (t for t in side.turns if t.is_measured and (t.question_id, t.turn) in common)
    return Side(turns=tuple(kept), blocks=side.blocks)


def _axes(mine: EngineKnobs, theirs: EngineKnobs) -> tuple[str, ...]:
    names = (field.name for field in fields(EngineKnobs) if field.name != _SAME_ARM)
    return tuple(name for name in names if getattr(mine, name) != getattr(theirs, name))
