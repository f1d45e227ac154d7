"""Acceptance by position: what may be lost at each, and where there are none."""

import pytest

from eaglebench.gate.decide import judge
from eaglebench.gate.policy import Policy, parse_rules
from eaglebench.records.verdict import Judgement, Verdict
from tests.snapshots import make_arm, make_question, make_snapshot

FOUR_THOUSAND = {"num_drafts": 4000}


def policy(*texts: str) -> Policy:
    """A policy of rules as typed."""
    return Policy(rules=parse_rules(texts))


def metrics(judgement: Judgement, verdict: Verdict) -> set[str]:
    """Names of the metrics with a verdict."""
    return {finding.metric for finding in judgement.with_verdict(verdict)}


def test_a_drop_at_the_first_position_is_seen_behind_the_mean() -> None:
    """The mean is unchanged, position 1 fell and position 2 rose."""
    run = make_snapshot(make_arm(accepted_at=(200, 200)))

    for rules in (("al:1%",), ()):
        judgement = judge(run, make_snapshot(make_arm()), policy(*rules))
        assert metrics(judgement, "REGRESSED") == {"al at position 1"}


def test_a_position_alone_is_not_called_by_chance() -> None:
    """What one position lost and another won, within what a handful of drafts scatter by."""
    for accepted_at in ((230, 170), (239, 161)):
        run = make_snapshot(make_arm(accepted_at=accepted_at))
        for rules in (("al:1%",), ()):
            judgement = judge(run, make_snapshot(make_arm()), policy(*rules))
            assert metrics(judgement, "REGRESSED") == set()


def test_a_longer_answer_is_not_red_for_a_position() -> None:
    """The length rose; position 2 fell by a draft in a hundred."""
    base = make_arm(questions=tuple(make_question(f"q{n}", steps=101) for n in range(4)))
    run = make_snapshot(make_arm(accepted_at=(260, 158)))

    judgement = judge(run, make_snapshot(base), policy("al:1%"))

    assert judgement.verdict == "IMPROVED", judgement.findings


@pytest.mark.parametrize(
    ("accepted_at", "lost"),
    [
        ((2290, 1530), set()),
        ((2270, 1600), {"al at position 1"}),
        ((2400, 1500), {"al at position 2"}),
        ((2200, 1400), {"al at position 1", "al at position 2"}),
    ],
)
def test_a_position_may_lose_half_of_what_is_allowed(
    accepted_at: tuple[int, int], lost: set[str]
) -> None:
    """With a tenth allowed, of 2400 and 1600 accepted drafts: 2280 and 1520 are a twentieth less."""
    run, base = (
        make_snapshot(make_arm(num_drafts=4000, accepted_at=found, counters=FOUR_THOUSAND))
        for found in (accepted_at, (2400, 1600))
    )

    judgement = judge(run, base, policy("al:10%"))

    assert metrics(judgement, "REGRESSED") == lost


@pytest.mark.parametrize("is_run", [True, False])
def test_without_drafts_there_are_no_positions(*, is_run: bool) -> None:
    """Plain decoding on one side: nothing to divide by, and nothing to say of positions."""
    plain, drafting = make_arm(num_drafts=0, accepted_at=(0, 0)), make_arm()
    mine, theirs = (plain, drafting) if is_run else (drafting, plain)

    judgement = judge(make_snapshot(mine), make_snapshot(theirs), policy("al:10%"))

    assert {finding.metric for finding in judgement.findings} == {"al"}
