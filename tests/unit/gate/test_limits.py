"""Limits of exact metrics: what was typed, in whole numbers for counts, and said in the finding."""

from dataclasses import replace

import pytest

from eaglebench.errors import UsageError
from eaglebench.gate.counts import judge_counts, limit_of
from eaglebench.gate.policy import EXACT_RULES, Policy, parse_rules
from tests.snapshots import make_arm, make_question


def finding(rule: str, before: int, after: int) -> tuple[str, str, float | None]:
    """Verdict, reason and applied limit of one counter."""
    name = rule.split(":", maxsplit=1)[0]
    mine, theirs = (make_arm(counters={name: value}) for value in (after, before))
    if name == "al":
        mine, theirs = (
            make_arm(questions=(make_question("q", emitted=2000, steps=value),))
            for value in (after, before)
        )
    found = judge_counts(mine, theirs, Policy(rules=parse_rules([rule])))
    assert len(found) == 1
    return found[0].verdict, found[0].reason, found[0].allowed


@pytest.mark.parametrize(
    ("rule", "before", "after", "verdict"),
    [
        ("evictions:4", 100, 104, "PASS"),
        ("evictions:4", 100, 105, "REGRESSED"),
        ("evictions:4", 0, 4, "PASS"),
        ("evictions:4", 0, 5, "REGRESSED"),
        ("cached_tokens:4", 100, 96, "PASS"),
        ("cached_tokens:4", 100, 95, "REGRESSED"),
        ("evictions:7%", 100, 107, "PASS"),
        ("evictions:7%", 100, 108, "REGRESSED"),
        ("evictions:0.57%", 10000, 10057, "PASS"),
        ("evictions:0.57%", 10000, 10058, "REGRESSED"),
        ("evictions:1%", 99, 100, "REGRESSED"),
        ("evictions:0", 3, 3, "PASS"),
        ("evictions:0", 3, 4, "REGRESSED"),
        ("evictions:1%", 0, 1, "REGRESSED"),
    ],
)
def test_a_count_may_lose_all_that_was_typed_and_not_one_more(
    rule: str, before: int, after: int, verdict: str
) -> None:
    """Whole amounts and whole per cents, whatever floats make of them."""
    assert finding(rule, before, after)[0] == verdict


def test_the_finding_prints_the_limit_that_applied() -> None:
    """For a length half of what was typed, for a count all of it."""
    length = finding("al:7.5%", 1000, 1041)
    count = finding("evictions:4", 100, 105)
    kept = finding("evictions:4", 100, 103)

    assert length[0] == "REGRESSED"
    assert length[1] == (
        "al 2.0000 -> 1.9212 (-3.94%), more than 3.750%, half of what al:7.5% allows"
    )
    assert length[2] == 0.0375
    assert count[1] == "evictions 100 -> 105 (+5.00%), more than 4 (evictions:4)"
    assert kept[1] == "evictions 100 -> 103 (+3.00%), no more than 4 (evictions:4)"
    assert count[2] == 0.04


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("al:1000000%", "less than 100 %"),
        ("al:100%", "less than 100 %"),
        ("throughput:100%", "less than 100 %"),
        ("throughput:" + "9" * 400 + "%", "less than 100 %"),
        ("al:64", "no acceptance length can lose so much"),
        ("al:" + "9" * 400, "no acceptance length can lose so much"),
        ("verify_steps:2.5", "whole number"),
        ("verify_steps:" + "9" * 400, "whole number"),
        ("output:1%", "lossless"),
        ("output:2", "lossless"),
        ("throughput:0.5", "per cent"),
    ],
)
def test_a_rule_that_could_never_fail_is_refused(rule: str, words: str) -> None:
    """Before anything is judged."""
    with pytest.raises(UsageError, match=words):
        parse_rules([rule])


def test_a_rule_reads_as_it_was_typed() -> None:
    """In findings and messages."""
    typed = ("al:7.5%", "verify_steps:4", "throughput:2%", "evictions:0%")

    assert tuple(rule.text for rule in parse_rules(typed)) == typed
    assert limit_of(parse_rules(["al:0.02"])[0], 2.0, 2.0).share == pytest.approx(0.005)


@pytest.mark.parametrize("lacking", ["candidate", "baseline"])
@pytest.mark.parametrize("name", ["evictions", "verify_steps", "emitted"])
def test_a_count_that_one_side_did_not_measure_is_not_zero(lacking: str, name: str) -> None:
    """Neither it nor the acceptance length made of it is judged."""
    whole = make_arm()
    part = replace(whole, counters={n: v for n, v in whole.counters.items() if n != name})
    mine, theirs = (part, whole) if lacking == "candidate" else (whole, part)

    found = {each.metric for each in judge_counts(mine, theirs, Policy(rules=EXACT_RULES))}

    assert name not in found
    assert ("al" in found) == (name == "evictions")
    assert "target_forwards" in found
