"""Room for proposals: what the plan reserves is what the drafter writes, at every place."""

from itertools import product

import pytest

from eaglebench.spec.shape import DraftRoom, DraftShape

LIMIT, ROOT = 24, 1


def shapes() -> list[DraftShape]:
    """Thin, wide, deep, with few and with many nodes."""
    found = []
    for levels, topk in product((1, 2, 5, 8), (1, 2, 4, 10)):
        most = DraftShape(levels, topk, 1).num_candidates
        least = levels if topk == 1 else 1
        found += [DraftShape(levels, topk, nodes) for nodes in sorted({least, min(most, 15), most})]
    return [shape for shape in found if shape.num_nodes >= shape.num_levels or shape.topk > 1]


@pytest.mark.parametrize("shape", shapes(), ids=str)
def test_what_is_reserved_is_what_some_outcome_writes(shape: DraftShape) -> None:
    """Every place of the root times every accepted depth: enough for all of them, all for one."""
    room = DraftRoom(shape, LIMIT)
    for start in range(LIMIT):
        proposed = room.after(start)
        written_end = start + ROOT + proposed.num_nodes
        committed = range(start + ROOT, start + ROOT + proposed.num_levels + 1)

        reserved = written_end + room.num_lookahead(written_end, committed)

        drafted = [end + room.after(end).num_scratch_slots for end in committed]
        used = max(written_end, *drafted)
        assert reserved >= used
        if not shape.is_chain:  # a chain holds one slot more, for the next step's last draft
            assert reserved == used
        assert reserved <= room.most_slots(LIMIT)
        assert reserved - start <= room.most_slots_of_a_step


@pytest.mark.parametrize("shape", shapes(), ids=str)
def test_most_slots_are_reached(shape: DraftShape) -> None:
    """The bound over a whole request is met by some place, so nothing more is spared."""
    room = DraftRoom(shape, LIMIT)
    ends = [LIMIT]
    for start in range(LIMIT):
        ends.append(start + ROOT + room.after(start).num_nodes)
        ends.append(start + room.after(start).num_scratch_slots)

    assert room.most_slots(LIMIT) == max(ends)


def test_nothing_is_reserved_past_the_heads_positions() -> None:
    """A head made for fewer positions than the context proposes nothing past them."""
    room = DraftRoom(DraftShape(3, 1, 3), limit=10)

    assert [room.after(start).num_levels for start in (5, 6, 7, 8, 9, 20)] == [3, 3, 2, 1, 0, 0]
    assert room.num_lookahead(20, range(17, 21)) == 0
    assert room.most_slots(40) == 40
