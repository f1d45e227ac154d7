"""An arm against another of the same run: which turns are a fault, and how many near-ties."""

from dataclasses import replace

import pytest

from eaglebench.contracts.measured import MeasuredTurn
from eaglebench.contracts.verdict import Verdict
from eaglebench.gate.arms import judge_arm
from eaglebench.stats.difference import Difference, Side, make_difference
from eaglebench.stats.pairing import Tau
from tests.turns import make_step, make_turn

TAU = Tau(target=0.5, draft=0.5)
SAME = make_turn(make_step(10, (3, 4), (3, 4, 5), 2))


def parted(gap: float) -> MeasuredTurn:
    """The turn with another first draft, which led by so much."""
    return make_turn(
        make_step(10, (8, 4), (3, 4, 5), 0, draft_gaps=(gap, 5.0)),
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
