"""Thresholds out of noise, what they cover, and how many choices are that close."""

from dataclasses import replace
from typing import Any

import pytest

from eaglebench.records.models import NumericNoise
from eaglebench.stats.tau import CloseShares, Tau, close_shares, thresholds
from tests.turns import make_step, make_turn

KNOWN = Tau(target=9.0, draft=9.0, target_swing=0.4, draft_swing=0.2)


def test_thresholds_are_multiples_of_the_noise() -> None:
    """Ten times a logit's, four times a lead's; a lead that was not measured has none."""
    whole = NumericNoise(target=0.01, draft=0.02, target_lead=0.1, draft_lead=0.05)

    assert thresholds(whole) == pytest.approx(
        {"target": 0.1, "draft": 0.2, "target_swing": 0.4, "draft_swing": 0.2}
    )
    assert set(thresholds(NumericNoise(target=0.01, draft=0.02))) == {"target", "draft"}


def test_records_of_every_age_are_read() -> None:
    """With swings, without them, and without anything."""
    assert Tau.recorded({"target": 9, "draft": 9, "target_swing": 0.4, "draft_swing": 0.2}) == KNOWN
    assert Tau.recorded({"target": 0.1, "draft": 0.2}) == Tau(target=0.1, draft=0.2)
    assert Tau.recorded({}) == Tau(target=0.0, draft=0.0)


def test_two_runs_have_the_wider_thresholds_of_both() -> None:
    """And no swings where one of them does not know any."""
    other = Tau(target=8.0, draft=10.0, target_swing=0.5, draft_swing=0.1)

    assert KNOWN.wider(other) == Tau(target=9.0, draft=10.0, target_swing=0.5, draft_swing=0.2)
    assert KNOWN.wider(Tau(target=0.1, draft=0.2)) == Tau(target=9.0, draft=9.0)


def test_a_swing_is_never_excused_more_than_a_gap_was() -> None:
    """For noise of any shape: a lead changes by two logits' at most, and a swing holds two gaps.

    So what is a near-tie by its swing (four leads, over up to 25 levels) was one by its gap (ten
    logits), and float32 gets no softer.
    """
    for lead in (0.0, 0.5, 1.0, 2.0):
        noise = NumericNoise(target=1.0, draft=1.0, target_lead=lead, draft_lead=lead)
        tau = Tau.recorded(thresholds(noise))
        old = Tau(target=tau.target, draft=tau.draft)
        for levels in (1, 4, 6):
            for gap in (0.0, 1.0, 2.0, 5.0, 9.9, 10.0):
                swing = 2 * gap
                if tau.covers("draft", gap=gap, swing=swing, levels=levels):
                    assert old.covers("draft", gap=gap, swing=swing, levels=levels)


def test_a_run_without_a_head_knows_the_swings_of_its_target() -> None:
    """One side's rule does not depend on what was measured of the other."""
    plain = Tau(target=9.0, draft=8.0, target_swing=0.4)

    assert (plain.knows_swings("target"), plain.knows_swings("draft")) == (True, False)
    assert not plain.covers("target", gap=0.1, swing=0.5)
    assert plain.covers("draft", gap=7.9, swing=50.0)


def test_scores_of_levels_are_noisier_than_a_token() -> None:
    """Four levels: twice the noise of one."""
    assert KNOWN.limit("draft", 4) == pytest.approx(0.4)
    assert KNOWN.covers("draft", gap=0.0, swing=0.3, levels=4)
    assert not KNOWN.covers("draft", gap=0.0, swing=0.3, levels=1)


def test_close_choices_are_counted_on_each_side() -> None:
    """Five choices of the target, two of them within 0.4; three of the head, one within 0.2."""
    turns = [
        make_turn(
            make_step(10, (3, 4), (3, 4, 5), 2, target_gaps=(0.3, 0.5, 0.39), draft_gaps=(0.1, 1)),
            make_step(13, (3,), (3, 9), 1, target_gaps=(0.4, 5), draft_gaps=(0.2,)),
        )
    ]

    shares = close_shares(turns, KNOWN)

    assert shares == CloseShares(2 / 5, 1 / 3)
    assert shares.are_many
    assert not CloseShares(0.05, None).are_many
    assert CloseShares(0.06, None).are_many
    assert CloseShares(None, 0.06).are_many
    assert close_shares([], KNOWN) == CloseShares(None, None)


@pytest.mark.parametrize("changes", [{"is_measured": False}, {"error": "too long"}])
def test_choices_of_turns_that_do_not_count_are_left_out(changes: dict[str, Any]) -> None:
    """Donors of a ladder, and turns that failed on the way."""
    turn = make_turn(make_step(10, (3,), (3, 4), 1))

    assert close_shares([replace(turn, **changes)], KNOWN) == CloseShares(None, None)
    assert close_shares([turn, replace(turn, **changes)], KNOWN) == CloseShares(0.0, 0.0)


def test_a_tree_is_one_choice_of_the_head() -> None:
    """Its nodes all carry the smallest lead, and two levels widen the threshold to 0.28."""
    tree = make_step(
        10, (3, 4, 5), (3, 5, 0, 0), 2, parents=(-1, -1, 0), draft_gaps=(0.25, 0.25, 0.25)
    )

    assert close_shares([make_turn(tree)], KNOWN).draft == 1.0
