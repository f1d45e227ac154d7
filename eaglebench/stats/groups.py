"""Acceptance by what was asked: category by category, first turns and later ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eaglebench.records.counters import Counters
from eaglebench.records.measured import MeasuredTurn
from eaglebench.stats.acceptance import answered, by_arm, pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Turns of the first pass that have something in common.

    Attributes:
        kind, name: `category` and which one, or `turn` and its number, from 1.
        num_turns: answered ones, in the cell and arm that has most of them.
        counts: pooled, by cell and arm; an arm without such a turn is missing.
    """

    kind: str
    name: str
    num_turns: int
    counts: dict[tuple[str, str], Counters]


def make_groups(turns: Sequence[MeasuredTurn]) -> list[Group]:
    """Categories in the order in which they were asked, then turns; none where there is only one."""
    first = answered(turn for turn in turns if turn.pass_index == 0)
    return [
        *_groups("category", first, lambda turn: turn.category),
        *_groups("turn", first, lambda turn: str(turn.turn + 1)),  # people count from 1
    ]


def _groups(
    kind: str, turns: Sequence[MeasuredTurn], name_of: Callable[[MeasuredTurn], str]
) -> list[Group]:
    named: dict[str, list[MeasuredTurn]] = {}
    for turn in turns:
        named.setdefault(name_of(turn), []).append(turn)
    if len(named) < 2:
        return []
    return [_group(kind, name, mine) for name, mine in named.items()]


def _group(kind: str, name: str, turns: Sequence[MeasuredTurn]) -> Group:
    arms = by_arm(turns)
    return Group(
        kind=kind,
        name=name,
        num_turns=max(map(len, arms.values())),
        counts={place: pool(mine) for place, mine in arms.items()},
    )
