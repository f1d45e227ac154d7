"""Where two turns part, worked out by hand: whose choice, at which position, by which gap.

The prompt has ten tokens (positions 0 to 9), prefill samples token 1 at position 10, and the first
verify step's root is that token.
"""

from dataclasses import replace

import pytest

from eaglebench.records.measured import MeasuredTurn
from eaglebench.records.observation import VerifyStep
from eaglebench.stats.pairing import PairClass, Parting, first_parting, pair_turns
from eaglebench.stats.prefix import OtherDrafts, common_prefix, count_other_drafts
from eaglebench.stats.tau import Side, Tau
from tests.turns import make_step, make_turn

TAU = Tau(target=99.0, draft=99.0, target_swing=0.5, draft_swing=0.05)
OLD = Tau(target=0.5, draft=0.05)
"""Of a run that did not measure how leads change."""
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


def test_a_parting_has_the_smaller_lead_and_the_sum() -> None:
    """Whichever arm leads by less; the logits moved against each other by both leads together."""
    target = turns_with(other_target((5.0, 0.75, 5.0)), replace(SECOND, target_gaps=(5, 0.25, 5)))
    draft = turns_with(other_draft((0.25, 5.0)), replace(SECOND, draft_gaps=(0.5, 5.0)))

    for pair in (target, tuple(reversed(target))):
        assert first_parting(*pair) == Parting("target", 1, 15, gap=0.25, swing=1.0)
    for pair in (draft, tuple(reversed(draft))):
        assert first_parting(*pair) == Parting("draft", 1, 14, gap=0.25, swing=0.75)


@pytest.mark.parametrize(
    ("other", "side", "position"),
    [
        (other_target((5.0, 5.0, 5.0)), "target", 15),
        (replace(SECOND, target_ids=(8, 5, 6), accepted=0, emitted=1), "target", 14),
        (other_draft((5.0, 5.0)), "draft", 14),
        (replace(SECOND, drafted_ids=(4, 5), accepted=2, emitted=3), "draft", 15),
    ],
)
def test_positions_are_those_of_the_chosen_token(
    other: VerifyStep, side: Side, position: int
) -> None:
    """A step's first choice stands behind its root, which stands at 13."""
    assert first_parting(*turns_with(SECOND, other)) == Parting(side, 1, position, 5.0, 10.0)


def test_the_first_token_of_an_answer_follows_the_prompt() -> None:
    """Ten tokens of prompt, so position 10."""
    sampled = replace(make_turn(FIRST, output=(8, 2, 3, 9)), prefill_gap=0.25)

    parting = first_parting(make_turn(FIRST, output=OUTPUT[:4]), sampled)

    assert parting == Parting("target", 0, 10, gap=0.25, swing=5.25)


@pytest.mark.parametrize(
    ("leads", "target_kind", "draft_kind"),
    [
        ((0.02, 0.02), "near-tie", "near-tie"),
        ((0.02, 0.03), "near-tie", "draft-state"),
        ((0.0, 0.49), "near-tie", "draft-state"),
        ((0.0, 0.5), "target-state", "draft-state"),
        ((0.01, 5.0), "target-state", "draft-state"),
    ],
)
def test_each_side_has_its_own_threshold(
    leads: tuple[float, float], target_kind: PairClass, draft_kind: PairClass
) -> None:
    """0.5 for the target's swings and 0.05 for the head's; a swing at the threshold is no tie.

    That one arm's lead was tiny excuses nothing where the other one's was large.
    """
    here, there = leads
    target = turns_with(other_target((5, here, 5)), replace(SECOND, target_gaps=(5, there, 5)))
    draft = turns_with(other_draft((here, 5)), replace(SECOND, draft_gaps=(there, 5)))

    kinds = [pair_turns([mine], [other], TAU)[0].kind for mine, other in (target, draft)]

    assert kinds == [target_kind, draft_kind]


@pytest.mark.parametrize(
    ("gap", "target_kind", "draft_kind"),
    [
        (0.04, "near-tie", "near-tie"),
        (0.05, "near-tie", "draft-state"),
        (0.5, "target-state", "draft-state"),
    ],
)
def test_runs_without_swings_are_judged_by_the_smaller_gap(
    gap: float, target_kind: PairClass, draft_kind: PairClass
) -> None:
    """As they were when they ran: the other arm's lead of 5 has no part in it."""
    target = turns_with(other_target((5.0, gap, 5.0)), SECOND)
    draft = turns_with(other_draft((gap, 5.0)), SECOND)

    kinds = [pair_turns([mine], [other], OLD)[0].kind for mine, other in (target, draft)]

    assert kinds == [target_kind, draft_kind]


def test_a_near_tie_hides_no_clear_parting_behind_it() -> None:
    """A draft turned by noise costs one arm a step more; the next common root has a sure draft.

    Positions of roots: 10, 13 and 15 in one arm, 10, 12, 13 and 15 in the other.
    """
    near = make_step(10, (2, 7), (2, 3, 0), 1, draft_gaps=(5.0, 0.01))
    between = make_step(12, (7,), (9, 0), 0)
    sure = make_step(15, (6,), (6, 7), 1)
    unsure = replace(sure, drafted_ids=(8,), accepted=0, emitted=1, draft_gaps=(0.01,))
    output = (*OUTPUT, 6, 7)
    first = replace(FIRST, draft_gaps=(5.0, 0.01))
    mine = make_turn(first, SECOND, sure, output=output)
    hurt = make_turn(near, between, SECOND, replace(unsure, draft_gaps=(3.0,)), output=output)
    noisy = make_turn(near, between, SECOND, unsure, make_step(16, (8,), (7, 0), 0), output=output)
    quiet = replace(mine, steps=(first, SECOND, replace(sure, draft_gaps=(0.01,))))

    (fault,) = pair_turns([mine], [hurt], TAU)
    (tie,) = pair_turns([quiet], [noisy], TAU)

    assert (fault.kind, fault.parting) == ("draft-state", Parting("draft", 2, 16, 3.0, 8.0))
    assert (tie.kind, tie.parting) == ("near-tie", Parting("draft", 0, 12, 0.01, 0.02))


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
        ((6, 3, 0, 9, 0), 1, Parting("target", 0, 11, 0.9, 1.8)),
        ((2, 5, 0, 9, 0), 1, Parting("target", 0, 12, 0.8, 1.6)),
        ((2, 3, 0, 8, 0), 2, Parting("target", 0, 13, 0.7, 1.4)),
        ((2, 5, 8, 9, 8), 1, Parting("target", 0, 12, 0.8, 1.6)),
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
    """The first level stands behind the root; two levels of scores were summed up."""
    other = replace(TREE, drafted_ids=(2, 6, 3, 8), draft_gaps=(0.3,) * 4)

    parting = first_parting(make_turn(TREE), make_turn(other))

    assert parting == Parting("draft", 0, 11, gap=0.3, swing=5.3, levels=2)


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


def test_tiers_and_costs_of_what_parts() -> None:
    """A step more is +1; equal, equal in other steps, parted, and failed in one arm."""
    same = make_turn(FIRST, SECOND, output=OUTPUT)
    slower = make_turn(
        make_step(10, (8, 3), (2, 3, 9), 0), make_step(11, (3,), (3, 9), 1), SECOND, output=OUTPUT
    )
    parted, _ = turns_with(other_target((5.0, 5.0, 5.0)), SECOND)
    failed = replace(same, error="too long")

    found = [pair_turns([mine], [same], TAU)[0] for mine in (same, slower, parted, failed)]
    (other_way,) = pair_turns([same], [failed], TAU)

    assert [pair.tier for pair in found] == ["identical", "matched", "diverged", "unpaired"]
    assert [pair.verify_steps_difference for pair in found] == [0, 1, 0, 0]
    assert other_way.kind == "failed"
