"""Where two turns part, worked out by hand: whose choice, at which position, by which gap.

The prompt has ten tokens (positions 0 to 9), prefill samples token 1 at position 10, and the first
verify step's root is that token.
"""

from dataclasses import replace

import pytest

from eaglebench.contracts.measured import MeasuredTurn
from eaglebench.contracts.observation import VerifyStep
from eaglebench.stats.drafts import OtherDrafts, count_other_drafts
from eaglebench.stats.pairing import PairClass, Parting, Tau, first_parting, pair_turns
from eaglebench.stats.prefix import common_prefix
from tests.turns import make_step, make_turn

TAU = Tau(target=0.5, draft=0.05)
OUTPUT = (1, 2, 3, 9, 4, 5)
FIRST = make_step(10, (2, 3), (2, 3, 9), 2)
"""Delivers 2, 3 and 9 at positions 11, 12 and 13."""
SECOND = make_step(13, (4, 7), (4, 5, 6), 1)
"""Delivers 4 and 5 at positions 14 and 15; draft 7 at position 15 was refused."""


def turns_with(step: VerifyStep, other: VerifyStep) -> tuple[MeasuredTurn, MeasuredTurn]:
    """Two turns that are the same but for their second step."""
    mine = make_turn(FIRST, step, output=(*OUTPUT[:4], *step.target_ids[: step.emitted]))
    theirs = make_turn(FIRST, other, output=(*OUTPUT[:4], *other.target_ids[: other.emitted]))
    return mine, theirs


def other_target(gaps: tuple[float, float, float]) -> VerifyStep:
    """The second step with another choice of the target after draft 4, at position 15."""
    return replace(SECOND, target_ids=(4, 8, 6), target_gaps=gaps)


def other_draft(gaps: tuple[float, float]) -> VerifyStep:
    """The second step with another first draft, at position 14; nothing is accepted."""
    return make_step(13, (7, 7), (4, 5, 6), 0, draft_gaps=gaps)


def test_the_smaller_gap_of_the_two_decides() -> None:
    """Noise has to overcome the smaller lead of the two, whichever arm it is in."""
    target = turns_with(other_target((5.0, 0.75, 5.0)), replace(SECOND, target_gaps=(5, 0.25, 5)))
    draft = turns_with(other_draft((0.04, 5.0)), replace(SECOND, draft_gaps=(0.75, 5.0)))

    assert first_parting(*target) == Parting("target", 1, 15, 0.25)
    assert first_parting(*reversed(target)) == Parting("target", 1, 15, 0.25)
    assert first_parting(*draft) == Parting("draft", 1, 14, 0.04)
    assert first_parting(*reversed(draft)) == Parting("draft", 1, 14, 0.04)


def test_positions_are_those_of_the_chosen_token() -> None:
    """Position 10 is the first of the answer; a step's first choice stands behind its root."""
    sampled = replace(make_turn(FIRST, output=(8, 2, 3, 9)), prefill_gap=0.25)
    (bonus,) = {
        first_parting(*turns_with(SECOND, replace(SECOND, target_ids=ids, emitted=2)))
        for ids in ((4, 8, 6),)
    }
    second_draft = replace(SECOND, drafted_ids=(4, 5), accepted=2, emitted=3)

    assert first_parting(make_turn(FIRST, output=OUTPUT[:4]), sampled) == Parting(
        "target", 0, 10, 0.25
    )
    assert bonus == Parting("target", 1, 15, 5.0)
    assert first_parting(*turns_with(SECOND, other_draft((5.0, 5.0)))) == Parting(
        "draft", 1, 14, 5.0
    )
    assert first_parting(*turns_with(SECOND, second_draft)) == Parting("draft", 1, 15, 5.0)


@pytest.mark.parametrize(
    ("gap", "target_kind", "draft_kind"),
    [
        (0.04, "near-tie", "near-tie"),
        (0.05, "near-tie", "draft-state"),
        (0.2, "near-tie", "draft-state"),
        (0.5, "target-state", "draft-state"),
    ],
)
def test_each_side_has_its_own_threshold(
    gap: float, target_kind: PairClass, draft_kind: PairClass
) -> None:
    """0.5 for the target's choices and 0.05 for the head's; a gap at the threshold is no tie."""
    target = turns_with(other_target((5.0, gap, 5.0)), SECOND)
    draft = turns_with(other_draft((gap, 5.0)), SECOND)

    kinds = [pair_turns([mine], [other], TAU)[0].kind for mine, other in (target, draft)]

    assert kinds == [target_kind, draft_kind]


TREE = make_step(
    10,
    (2, 6, 3, 7),
    (2, 3, 0, 9, 0),
    2,
    parents=(-1, -1, 0, 1),
    target_gaps=(0.9, 0.8, 0.1, 0.7, 0.2),
)
"""Nodes 2 and 6 under the root, 3 under 2, 7 under 6; accepted: 2, 3, then the bonus 9."""


@pytest.mark.parametrize(
    ("target_ids", "accepted", "parting"),
    [
        ((6, 3, 0, 9, 0), 1, Parting("target", 0, 11, 0.9)),
        ((2, 5, 0, 9, 0), 1, Parting("target", 0, 12, 0.8)),
        ((2, 3, 0, 8, 0), 2, Parting("target", 0, 13, 0.7)),
        ((2, 5, 8, 9, 8), 1, Parting("target", 0, 12, 0.8)),
        ((2, 3, 8, 9, 8), 2, None),
    ],
)
def test_in_a_tree_the_walk_decides(
    target_ids: tuple[int, ...], accepted: int, parting: Parting | None
) -> None:
    """A choice behind a node that the walk did not reach, however close, is not the cause."""
    other = replace(TREE, target_ids=target_ids, accepted=accepted, emitted=accepted + 1)

    assert first_parting(make_turn(TREE), make_turn(other)) == parting


def test_other_trees_part_by_the_smallest_lead_that_shaped_them() -> None:
    """The first level stands at the position behind the root."""
    other = replace(TREE, drafted_ids=(2, 6, 3, 8), draft_gaps=(0.3,) * 4)

    assert first_parting(make_turn(TREE), make_turn(other)) == Parting("draft", 0, 11, 0.3)


def test_steps_count_up_to_the_first_other_token() -> None:
    """Six tokens against six that differ at the fifth: four are shared, and one step ends in them."""
    mine = make_turn(FIRST, SECOND, output=OUTPUT)
    theirs = make_turn(
        make_step(10, (2, 8), (2, 3, 0), 1),
        make_step(12, (8, 8), (9, 0, 0), 0),
        make_step(13, (8, 8), (7, 0, 0), 0),
        output=(1, 2, 3, 9, 7, 5),
    )

    prefix = common_prefix(mine, theirs)

    assert (prefix.num_tokens, prefix.emitted, prefix.verify_steps) == (4, 3, 1)
    assert (prefix.other_emitted, prefix.other_verify_steps) == (3, 2)


@pytest.mark.parametrize(
    ("output", "num_common"),
    [
        (OUTPUT, 2),
        ((1, 2, 3, 9, 8, 5), 2),
        ((1, 2, 3, 8, 4, 5), 1),
        ((8, 2, 3, 9, 4, 5), 0),
    ],
)
def test_a_step_is_common_if_everything_up_to_its_root_is(
    output: tuple[int, ...], num_common: int
) -> None:
    """The second root is token 9 at position 13: the fourth of the answer, itself included."""
    mine = make_turn(FIRST, SECOND, output=OUTPUT)

    found = count_other_drafts([mine], [replace(mine, output_token_ids=output)])

    assert found == OtherDrafts(0, num_common)
