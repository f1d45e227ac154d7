"""Other drafts of the same head are another computation, whatever came of them."""

from dataclasses import replace

import pytest

from eaglebench.errors import UsageError
from eaglebench.gate.decide import judge
from eaglebench.gate.policy import Policy, parse_rules
from eaglebench.records.verdict import Finding
from eaglebench.stats.snapshot import question_counts
from tests.snapshots import make_arm, make_question, make_snapshot, slower
from tests.turns import make_step, make_turn

KNOWN = make_question("q0")
OTHER = replace(KNOWN, drafts_sha="5" * 8)


def on_drafts(*rules: str, **changes: object) -> Finding:
    """The finding on one question whose drafts changed, and whatever else."""
    mine = replace(OTHER, **changes)  # type: ignore[arg-type]  # fields of a question
    run, base = (make_snapshot(make_arm(questions=(question,))) for question in (mine, KNOWN))
    judgement = judge(run, base, Policy(rules=parse_rules(rules)))
    (finding,) = [f for f in judgement.findings if f.metric == "drafts"]
    return finding


def test_other_drafts_accepted_in_the_same_steps_are_red() -> None:
    """The same tokens in the same steps: every count passes, and the question is named."""
    finding = on_drafts()

    assert (finding.verdict, finding.questions) == ("REGRESSED", ("q0",))
    assert "drafted other tokens" in finding.reason
    assert on_drafts("drafts:0").verdict == "REGRESSED"


def test_a_changed_question_is_judged_by_what_changed() -> None:
    """Other steps or another answer bring other drafts with them."""
    assert on_drafts(accept_sha="6" * 8).verdict == "PASS"
    assert on_drafts(output_sha="6" * 8).verdict == "PASS"
    assert on_drafts(drafts_sha=KNOWN.drafts_sha).verdict == "PASS"


def test_better_drafts_are_not_red() -> None:
    """A head that accepts more in one question may draft otherwise in the next."""
    questions = (OTHER, make_question("q1"))
    base = make_snapshot(make_arm(questions=(KNOWN, slower(make_question("q1"), 4))))
    judgement = judge(
        make_snapshot(make_arm(questions=questions)), base, Policy(rules=parse_rules([]))
    )

    assert judgement.verdict == "IMPROVED"


def test_drafts_that_were_not_recorded_are_said() -> None:
    """A note, and no finding that would be a pass."""
    base = make_snapshot(make_arm(questions=(replace(KNOWN, drafts_sha=None),)), name="old")
    judgement = judge(
        make_snapshot(make_arm(questions=(KNOWN,))), base, Policy(rules=parse_rules([]))
    )

    assert not [f for f in judgement.findings if f.metric == "drafts"]
    assert any("drafts not recorded in old" in note for note in judgement.notes)


def test_drafts_have_no_share_that_may_change() -> None:
    """They are the same or they are not."""
    with pytest.raises(UsageError, match="drafts are the same or they are not"):
        parse_rules(["drafts:1%"])


def test_the_digest_is_of_all_drafts_in_order() -> None:
    """Another token, another step, another parent; None where a step was not told."""
    step = make_step(10, (3, 4), (1, 0, 0), 0)
    turns = [
        make_turn(step),
        make_turn(make_step(10, (3, 5), (1, 0, 0), 0)),
        make_turn(make_step(10, (4, 3), (1, 0, 0), 0)),
        make_turn(replace(step, parents=(-1, -1))),
    ]
    digests = {question_counts([turn])[0].drafts_sha for turn in turns}

    assert len(digests) == 4
    assert None not in digests
    for untold in (replace(turns[0], accepted_per_step=None), replace(turns[0], steps=())):
        assert question_counts([untold])[0].drafts_sha is None
