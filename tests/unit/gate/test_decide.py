"""The gate: what passes, what does not, and what can't be said."""

from dataclasses import replace

import pytest

from eaglebench.errors import UsageError
from eaglebench.gate.decide import judge
from eaglebench.gate.policy import EXACT_RULES, Policy, parse_rules
from eaglebench.records.verdict import Judgement, Verdict
from tests.snapshots import make_arm, make_question, make_snapshot, slower

EXACT = Policy(rules=EXACT_RULES)


def policy(*texts: str, **changes: object) -> Policy:
    """A policy of rules as typed."""
    return Policy(rules=parse_rules(texts), **changes)  # type: ignore[arg-type]


def metrics(judgement: Judgement, verdict: Verdict) -> set[str]:
    """Names of the metrics with a verdict."""
    return {finding.metric for finding in judgement.with_verdict(verdict)}


def test_the_same_counts_pass() -> None:
    """Every exact metric is judged and unchanged."""
    judgement = judge(make_snapshot(), make_snapshot(), EXACT)

    assert judgement.verdict == "PASS"
    assert len(judgement.findings) == 2 * len(EXACT_RULES)


def test_one_more_verify_step_is_a_regression_with_its_question() -> None:
    """Same output, other steps: the matched tier, and the question is named."""
    questions = tuple(make_question(f"q{n}") for n in range(4))
    changed = (*questions[:3], slower(questions[3], 1))

    judgement = judge(make_snapshot(make_arm(questions=changed)), make_snapshot(make_arm()), EXACT)

    assert judgement.verdict == "REGRESSED"
    length = next(f for f in judgement.findings if f.metric == "al")
    assert (length.tier, length.questions) == ("matched", ("q3",))
    assert "verify_steps" in metrics(judgement, "REGRESSED")


def test_fewer_verify_steps_are_an_improvement() -> None:
    """Better is said as loudly as worse."""
    questions = tuple(make_question(f"q{n}", steps=100 - (n == 0)) for n in range(4))

    judgement = judge(
        make_snapshot(make_arm(questions=questions, accepted_at=(240, 160))),
        make_snapshot(make_arm()),
        EXACT,
    )

    assert judgement.verdict == "IMPROVED"
    assert {"al", "verify_steps"} <= metrics(judgement, "IMPROVED")


def test_other_output_is_a_regression_even_with_the_same_length() -> None:
    """The engine is lossless: other tokens on the same machine are a fault."""
    questions = tuple(make_question(f"q{n}", output_sha=f"{n}" * 8) for n in range(4))

    judgement = judge(
        make_snapshot(make_arm(questions=questions)), make_snapshot(make_arm()), EXACT
    )

    output = next(f for f in judgement.findings if f.metric == "output")
    assert (output.verdict, output.tier) == ("REGRESSED", "diverged")
    assert output.questions == ("q1", "q2", "q3")


@pytest.mark.parametrize(
    ("rule", "steps", "verdict"),
    [
        ("al:1%", 1, "PASS"),
        ("al:1%", 3, "REGRESSED"),
        ("al:0.02", 1, "PASS"),
        ("al:0.02", 3, "REGRESSED"),
        ("verify_steps:0", 1, "REGRESSED"),
        ("verify_steps:2%", 8, "PASS"),
        ("verify_steps:2%", 9, "REGRESSED"),
        ("verify_steps:4", 4, "PASS"),
        ("verify_steps:4", 5, "REGRESSED"),
        ("evictions:0", 50, "PASS"),
    ],
)
def test_a_ratio_is_decided_at_half_of_its_rule_and_a_count_by_all_of_it(
    rule: str, steps: int, verdict: str
) -> None:
    """Of 400 verify steps; a metric without a rule is not judged."""
    questions = tuple(make_question(f"q{n}") for n in range(4))
    changed = (*questions[:3], slower(questions[3], steps))
    arm = make_arm(questions=changed, accepted_at=(240, 160), num_drafts=400)

    judgement = judge(make_snapshot(arm), make_snapshot(make_arm()), policy(rule))

    assert judgement.verdict == verdict


def test_a_planted_drop_of_two_per_cent_is_caught() -> None:
    """With one per cent allowed; a tenth of that is let through."""
    base = tuple(make_question(f"q{n}", emitted=2000, steps=1000) for n in range(10))
    worse = tuple(slower(question, 20) for question in base)
    nearly = (slower(base[0], 10), *base[1:])

    def verdict(questions: tuple[object, ...]) -> str:
        mine = make_arm(questions=questions, accepted_at=(), num_drafts=0)  # type: ignore[arg-type]
        theirs = make_arm(questions=base, accepted_at=(), num_drafts=0)
        return judge(make_snapshot(mine), make_snapshot(theirs), policy("al:1%")).verdict

    assert verdict(worse) == "REGRESSED"
    assert verdict(nearly) == "PASS"


def test_an_implausible_gain_is_no_pass() -> None:
    """Half the verify steps for the same workload is another measurement."""
    questions = tuple(make_question(f"q{n}", steps=50) for n in range(4))

    judgement = judge(
        make_snapshot(make_arm(questions=questions)), make_snapshot(make_arm()), policy("al:1%")
    )

    assert judgement.verdict == "NOT_COMPARABLE"
    assert "implausible" in judgement.findings[0].reason


def test_a_lost_scenario_is_named_and_never_passes() -> None:
    """The baseline's list decides, not what the run happens to hold."""
    judgement = judge(make_snapshot(make_arm("no-cache")), make_snapshot(), EXACT)

    assert judgement.verdict == "NOT_COMPARABLE"
    lost = judgement.with_verdict("NOT_COMPARABLE")[0]
    assert (lost.cell_id, lost.arm) == ("page1", "radix")


def test_a_new_scenario_is_a_note_or_a_finding() -> None:
    """The policy decides."""
    run = make_snapshot(make_arm(), make_arm("no-cache"), make_arm(cell_id="page16"))

    assert judge(run, make_snapshot(), EXACT).verdict == "PASS"
    assert "page16 radix is new" in judge(run, make_snapshot(), EXACT).notes[0]
    strict = replace(EXACT, fail_on_new=True)
    assert judge(run, make_snapshot(), strict).verdict == "NOT_COMPARABLE"


def test_other_questions_are_not_comparable() -> None:
    """Two questions of eighty are no improvement; the odd ones are named."""
    few = make_arm(questions=(make_question("q0"), make_question("q1")))

    judgement = judge(make_snapshot(few), make_snapshot(make_arm()), EXACT)

    assert judgement.verdict == "NOT_COMPARABLE"
    assert judgement.findings[0].questions == ("q2", "q3")


def test_nothing_measured_is_not_comparable() -> None:
    """No arm, and an arm without an answered question."""
    empty = replace(make_arm(), questions=(), counters=dict.fromkeys(make_arm().counters, 0))

    assert judge(make_snapshot(empty), make_snapshot(), EXACT).verdict == "NOT_COMPARABLE"
    nothing = replace(make_snapshot(), arms=())
    assert judge(nothing, nothing, EXACT).verdict == "NOT_COMPARABLE"


def test_more_failures_than_before_fail() -> None:
    """A question that can't be answered any more is not left out silently."""
    judgement = judge(make_snapshot(make_arm(failed=1)), make_snapshot(make_arm()), policy("al:5%"))

    assert judgement.verdict == "FAILED"


def test_an_unfinished_run_is_not_comparable() -> None:
    """Its counts are those of fewer questions."""
    run = make_snapshot(is_complete=False)

    assert judge(run, make_snapshot(), EXACT).verdict == "NOT_COMPARABLE"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"suite_version": 2}, "suite_version: 2 here, 1 in run"),
        ({"suite": "other"}, "suite: other here, toy"),
        ({"workload": {"max_new_tokens": 32, "dtype": "float32"}}, "max_new_tokens: 32 here"),
        ({"exact": {"dtype": "float32", "torch": "2.11.0"}}, "torch: 2.11.0 here, 2.13.0"),
    ],
)
def test_what_differs_is_named(changes: dict[str, object], named: str) -> None:
    """A foreign run is not comparable, and the message says why."""
    judgement = judge(make_snapshot(**changes), make_snapshot(), EXACT)

    assert judgement.verdict == "NOT_COMPARABLE"
    assert any(named in finding.reason for finding in judgement.findings)


def test_an_option_of_a_later_version_is_no_difference() -> None:
    """A baseline stays good when options are added."""
    run = make_snapshot(workload={"max_new_tokens": 64, "dtype": "float32", "new": 1.0})

    assert judge(run, make_snapshot(), EXACT).verdict == "PASS"


def test_counts_of_float64_travel() -> None:
    """Another machine and torch, the same models: counts compare."""
    here = {"dtype": "float64", "target_sha256": "b" * 64, "torch": "2.11.0", "arch": "arm64"}
    there = {"dtype": "float64", "target_sha256": "b" * 64, "torch": "2.13.0", "arch": "x86_64"}

    judgement = judge(make_snapshot(exact=here), make_snapshot(exact=there), EXACT)

    assert judgement.verdict == "PASS"


@pytest.mark.parametrize("name", ["target_sha256", "draft_sha256", "tokenizer_sha256"])
@pytest.mark.parametrize("other", ["c" * 64, None])
def test_counts_of_float64_are_those_of_their_models(name: str, other: str | None) -> None:
    """Another target, head or tokenizer is another measurement, even where counts travel."""
    there = {
        "dtype": "float64",
        "target_sha256": "b" * 64,
        "draft_sha256": "b" * 64,
        "tokenizer_sha256": "b" * 64,
    }

    judgement = judge(make_snapshot(exact=there | {name: other}), make_snapshot(exact=there), EXACT)

    assert judgement.verdict == "NOT_COMPARABLE"
    assert (
        f"{name}: {'cccccccccccc...' if other else 'not recorded'} here"
        in judgement.findings[0].reason
    )


def test_across_environments_acceptance_is_a_claim_about_other_prompts() -> None:
    """Forty long questions are enough for an interval; four are refused."""
    here = {"dtype": "float32", "torch": "2.11.0"}
    base = tuple(make_question(f"q{n}", emitted=200 + n % 7) for n in range(40))
    worse = tuple(slower(question, 4) for question in base)
    rules = policy("al:2%", across_environments=True)

    many = judge(
        make_snapshot(make_arm(questions=worse), exact=here),
        make_snapshot(make_arm(questions=base)),
        rules,
    )
    few = judge(make_snapshot(exact=here), make_snapshot(), rules)

    assert many.findings[0].verdict == "REGRESSED"
    assert many.findings[0].tier == "other-prompts"
    assert {finding.verdict for finding in few.findings} == {"NOT_COMPARABLE"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("al", "is no rule"),
        ("al:-1%", "is no rule"),
        ("al:nan", "is no rule"),
        ("acl:1%", "unknown metric 'acl'"),
        ("throughput:3", "give the loss in per cent"),
        ("al:1%,al:2%", "names al twice"),
    ],
)
def test_rules_that_are_none_are_refused(text: str, message: str) -> None:
    """Before anything is read."""
    with pytest.raises(UsageError, match=message):
        parse_rules([text])


@pytest.mark.parametrize("rule", ["evictions:0", "al:1%", "drafts:0", "throughput:5%"])
def test_a_rule_that_finds_nothing_to_judge_is_no_pass(rule: str) -> None:
    """A counter that a side lacks, an arm without a verify step: not comparable, by its name."""
    name = rule.split(":", maxsplit=1)[0]
    silent = make_arm(
        num_drafts=0,
        accepted_at=(),
        noise=None,
        questions=(make_question("q0", emitted=0, steps=0, drafts_sha=None),),
    )
    kept = {n: v for n, v in silent.counters.items() if n not in {name, "verify_steps"}}
    lacking = make_snapshot(replace(silent, counters=kept))

    judgement = judge(lacking, lacking, policy(rule))

    assert judgement.verdict in {"NOT_COMPARABLE", "INCONCLUSIVE"}, judgement.findings
    if name != "throughput":
        (refused,) = judgement.with_verdict("NOT_COMPARABLE")
        assert refused.metric == name
