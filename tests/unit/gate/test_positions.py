"""Acceptance by position: what may be lost at each, and where there are none."""

import pytest

from eaglebench.gate.decide import judge
from eaglebench.gate.policy import Policy, parse_rules
from eaglebench.records.verdict import Judgement, Verdict
from tests.snapshots import make_arm, make_snapshot


def policy(*texts: str) -> Policy:
    """A policy of rules as typed."""
    return Policy(rules=parse_rules(texts))


def metrics(judgement: Judgement, verdict: Verdict) -> set[str]:
    """Names of the metrics with a verdict."""
    return {finding.metric for finding in judgement.with_verdict(verdict)}


def test_a_drop_at_the_first_position_is_seen_behind_the_mean() -> None:
    """The mean is unchanged, position 1 fell and position 2 rose."""
    run = make_snapshot(make_arm(accepted_at=(220, 180)))

    judgement = judge(run, make_snapshot(make_arm()), policy("al:1%"))

    assert metrics(judgement, "REGRESSED") == {"al at position 1"}


@pytest.mark.parametrize(
    ("accepted_at", "lost"),
    [
        ((229, 153), set()),
        ((227, 160), {"al at position 1"}),
        ((240, 151), {"al at position 2"}),
        ((220, 140), {"al at position 1", "al at position 2"}),
    ],
)
def test_a_position_may_lose_half_of_what_is_allowed(
    accepted_at: tuple[int, int], lost: set[str]
) -> None:
    """With a tenth allowed, of 240 and 160 accepted drafts: 228 and 152 are a twentieth less."""
    run = make_snapshot(make_arm(accepted_at=accepted_at))

    judgement = judge(run, make_snapshot(make_arm()), policy("al:10%"))

    assert metrics(judgement, "REGRESSED") == lost


@pytest.mark.parametrize("is_run", [True, False])
def test_without_drafts_there_are_no_positions(*, is_run: bool) -> None:
    """Plain decoding on one side: nothing to divide by, and nothing to say of positions."""
    plain, drafting = make_arm(num_drafts=0, accepted_at=(0, 0)), make_arm()
    mine, theirs = (plain, drafting) if is_run else (drafting, plain)

    judgement = judge(make_snapshot(mine), make_snapshot(theirs), policy("al:10%"))

    assert {finding.metric for finding in judgement.findings} == {"al"}
