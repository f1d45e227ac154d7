"""An arm against another of the same run: which turns are a fault, and how many near-ties."""

from dataclasses import replace

import pytest

from eaglebench.gate.arms import judge_arm, judge_runs
from eaglebench.records.measured import MeasuredTurn
from eaglebench.records.verdict import Verdict
from eaglebench.stats.difference import Difference, Side, make_difference
from eaglebench.stats.tau import Tau
from tests.turns import make_step, make_turn

TAU = Tau(target=9.0, draft=9.0, target_swing=0.5, draft_swing=0.5)
LEAD = 0.125
"""Of the first draft, wherever nothing else is said: one choice in two is close."""
SAME = make_turn(make_step(10, (3, 4), (3, 4, 5), 2, draft_gaps=(LEAD, 5.0)))


def parted(swing: float) -> MeasuredTurn:
    """The turn with another first draft; both arms' leads make this swing."""
    return make_turn(
        make_step(10, (8, 4), (3, 4, 5), 0, draft_gaps=(swing - LEAD, 5.0)),
        make_step(11, (4,), (4, 5), 1),
        output=SAME.output_token_ids,
    )


def make_compared(*turns: MeasuredTurn, total: int = 40) -> Difference:
    """Turns that differ, and equal ones up to so many, against turns that are all equal."""
    filled = [*turns, *[SAME] * (total - len(turns))]
    named = [replace(turn, question_id=f"q{n}") for n, turn in enumerate(filled)]
    theirs = [replace(SAME, question_id=f"q{n}", arm="no-cache") for n in range(total)]
    mine, other = Side(turns=tuple(named), blocks=()), Side(turns=tuple(theirs), blocks=())
    return make_difference(mine, other, "no-cache", TAU)


@pytest.mark.parametrize(
    ("num_ties", "total", "verdict"),
    [
        (0, 40, "PASS"),
        (2, 40, "PASS"),
        (3, 40, "INCONCLUSIVE"),
        (1, 4, "PASS"),
        (2, 4, "INCONCLUSIVE"),
        (5, 100, "PASS"),
        (6, 100, "INCONCLUSIVE"),
    ],
)
def test_near_ties_are_rare(num_ties: int, total: int, verdict: Verdict) -> None:
    """One turn, or one in twenty: more of them are looked at by a person."""
    finding = judge_arm("page1", "radix", make_compared(*[parted(0.25)] * num_ties, total=total))

    assert finding.verdict == verdict
    assert finding.questions == tuple(f"q{n}" for n in range(num_ties))
    assert f"{num_ties} " in finding.reason or not num_ties


def test_many_close_choices_are_not_decidable() -> None:
    """Half of the head's choices could be turned by noise: another precision would tell."""
    finding = judge_arm("page1", "radix", make_compared(*[parted(0.25)] * 3))

    assert "not decidable at this precision, 0.0% of the target's and " in finding.reason
    assert "of the head's choices lie within the noise" in finding.reason
    assert "--dtype float32" in finding.reason


def test_between_two_runs_undecided_near_ties_are_no_pass() -> None:
    """Three of forty turns part; two of them could be an accident."""
    few, many = (
        judge_runs("page1", "radix", make_compared(*[parted(0.25)] * count), None)
        for count in (2, 3)
    )

    assert few.verdict == "PASS"
    assert many.verdict == "INCONCLUSIVE"
    assert "3 near-tie" in many.reason
    assert "not decidable at this precision" in many.reason


def test_one_clear_parting_is_a_fault() -> None:
    """Whatever else is a near-tie, and however many turns are the same."""
    finding = judge_arm("page1", "radix", make_compared(parted(0.25), parted(0.75)))

    assert finding.verdict == "REGRESSED"
    assert finding.questions == ("q1",)
    assert "1 of 40 turns part from no-cache where the choice was clear (draft-state)" in (
        finding.reason
    )


def test_turns_that_failed_in_one_arm_fail() -> None:
    """They were asked and not answered."""
    finding = judge_arm("page1", "radix", make_compared(replace(SAME, error="too long")))

    assert (finding.verdict, finding.questions) == ("FAILED", ("q0",))


def test_nothing_in_common_is_not_comparable() -> None:
    """Other prompts are other work."""
    finding = judge_arm(
        "page1", "radix", make_compared(replace(SAME, prompt_token_ids=(1,)), total=1)
    )

    assert finding.verdict == "NOT_COMPARABLE"
