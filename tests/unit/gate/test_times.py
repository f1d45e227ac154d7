"""Verdicts on throughput: what one run, several runs and many cells can tell."""

from dataclasses import replace

import pytest

from eaglebench.gate.decide import judge
from eaglebench.gate.policy import Policy, parse_rules
from eaglebench.records.snapshot import ArmNoise
from eaglebench.records.verdict import Finding, Judgement, Verdict
from tests.snapshots import make_arm, make_question, make_snapshot, slower


def policy(*texts: str, **changes: object) -> Policy:
    """A policy of rules as typed."""
    return Policy(rules=parse_rules(texts), **changes)  # type: ignore[arg-type]


def metrics(judgement: Judgement, verdict: Verdict) -> set[str]:
    """Names of the metrics with a verdict."""
    return {finding.metric for finding in judgement.with_verdict(verdict)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_times_need_what_decides_integers_as_well(dtype: str) -> None:
    """On one machine, in another torch: counts of float64 compare, times never do."""
    here = {"dtype": dtype, "torch": "2.11.0", "target_sha256": "b" * 64}

    judgement = judge(
        make_snapshot(exact=here),
        make_snapshot(exact=here | {"torch": "2.13.0"}),
        policy("throughput:2%"),
    )

    (refused,) = on_times(judgement)
    assert refused.verdict == "NOT_COMPARABLE"
    assert "torch: 2.11.0 here, 2.13.0 in run" in refused.reason


def test_times_need_the_same_machine_class() -> None:
    """Counts compare, times don't, and the key is named."""
    run = make_snapshot(timing={"cpu": "another"})

    judgement = judge(run, make_snapshot(), policy("al:1%", "throughput:2%"))

    (refused,) = judgement.with_verdict("NOT_COMPARABLE")
    assert refused.metric == "throughput"
    assert "cpu: another here, some in run" in refused.reason
    assert metrics(judgement, "PASS") == {"al"}


def noisy(change_ppm: int, sd_ppm: int = 4_000, pairs: int = 16) -> ArmNoise:
    """A throughput ratio that moved by so much, in one run."""
    return ArmNoise(
        log_ratio_ppm=50_000 + change_ppm, pass_sd_ppm=sd_ppm, passes=pairs, info_tok_s=40.0
    )


def on_times(judgement: Judgement) -> list[Finding]:
    """Findings on throughput."""
    return [finding for finding in judgement.findings if finding.metric == "throughput"]


KNOWN = replace(noisy(0), runs=10, run_sd_ppm=2_000)
"""A baseline of ten runs that differ by 0.2 %."""


@pytest.mark.parametrize(
    ("noise", "verdict"),
    [
        (noisy(0), "PASS"),
        (noisy(-5_000), "PASS"),
        (noisy(-50_000), "REGRESSED"),
        (noisy(50_000), "IMPROVED"),
        (noisy(400_000), "NOT_COMPARABLE"),
        (noisy(-50_000, sd_ppm=160_000), "INCONCLUSIVE"),
        (noisy(-50_000, sd_ppm=40_000), "REGRESSED"),
        (noisy(0, sd_ppm=40_000), "INCONCLUSIVE"),
        (noisy(0, pairs=4), "INCONCLUSIVE"),
        (None, "INCONCLUSIVE"),
    ],
)
def test_throughput_is_the_ratio_in_the_run_against_the_stored_one(
    noise: ArmNoise | None, verdict: str
) -> None:
    """A slow-down of five per cent is caught where it is certain, and unknown where it isn't."""
    run = make_snapshot(make_arm(noise=noise), make_arm("no-cache"))
    base = make_snapshot(make_arm(noise=KNOWN), make_arm("no-cache"))

    (finding,) = on_times(judge(run, base, policy("throughput:2%")))
    assert finding.verdict == verdict, finding.reason


@pytest.mark.parametrize("rule", ["throughput:2%", "throughput:5%", "throughput:20%"])
@pytest.mark.parametrize(("change_ppm", "verdict"), [(0, "INCONCLUSIVE"), (-120_000, "REGRESSED")])
def test_a_baseline_of_one_run_tells_a_certain_loss_and_nothing_else(
    rule: str, change_ppm: int, verdict: str
) -> None:
    """Runs differ by about 1 %, which no number of passes of one run shows; it says what would tell."""
    run = make_snapshot(make_arm(noise=noisy(change_ppm)))

    (finding,) = on_times(judge(run, make_snapshot(make_arm()), policy(rule)))

    if rule == "throughput:20%" and change_ppm == 0:  # so much even one run can tell
        verdict = "PASS"
    assert finding.verdict == verdict, finding.reason
    if verdict == "INCONCLUSIVE":
        assert "baseline save --runs 10" in finding.reason
        assert finding.half_width == pytest.approx(0.033, abs=0.002)


def test_what_a_run_can_show_follows_from_both_runs() -> None:
    """Passes that would tell are more than there were; an interval of runs is that of their scatter."""
    run = make_snapshot(make_arm(noise=noisy(0, sd_ppm=40_000)))
    base = make_snapshot(make_arm(noise=KNOWN))
    (wide,) = on_times(judge(run, base, policy("throughput:2%")))
    (close,) = on_times(judge(make_snapshot(make_arm()), base, policy("throughput:2%")))

    assert "about 109 passes of each would tell" in wide.reason
    assert close.half_width == pytest.approx(2.8214 * 0.002 * 1.1**0.5, rel=0.01)
    assert close.mde == pytest.approx((2.8214 + 0.8834) * 0.002 * 1.1**0.5, rel=0.01)
    apart = make_snapshot(make_arm(noise=replace(KNOWN, run_sd_ppm=9_000)))
    (far,) = on_times(judge(make_snapshot(make_arm()), apart, policy("throughput:2%")))
    assert "runs of this machine differ by 0.90%: eaglebench ab would tell" in far.reason


def test_a_rule_on_time_is_added_to_the_counts() -> None:
    """A lost verify step stays red whatever is asked of times; a rule on a count says what is left."""
    questions = (slower(make_question("q0"), 1), make_question("q1"))
    run = make_snapshot(make_arm(questions=questions))
    base = make_snapshot(make_arm(questions=(make_question("q0"), make_question("q1"))))

    timed = judge(run, base, policy("throughput:2%"))
    counted = judge(run, base, policy("evictions:0", "throughput:2%"))

    assert {f.metric for f in timed.findings if f.verdict == "REGRESSED"} >= {"al", "verify_steps"}
    assert not any("not judged" in note for note in timed.notes)
    assert metrics(counted, "REGRESSED") == set()
    (note,) = [note for note in counted.notes if "not judged" in note]
    assert "al, output" in note
    assert "verify_steps" in note


def test_a_pass_on_times_says_what_it_does_not_see() -> None:
    """Only where times were judged, and passed."""
    run, base = (make_snapshot(make_arm(noise=noise)) for noise in (noisy(0), KNOWN))

    judged, counted = judge(run, base, policy("throughput:5%")), judge(run, base, policy())

    assert {finding.verdict for finding in on_times(judged)} == {"PASS"}
    assert any("slows all arms down alike" in note for note in judged.notes)
    assert not any("slows all arms" in note for note in counted.notes)


def test_a_baseline_of_too_few_passes_decides_nothing() -> None:
    """Seven stored passes against many quiet ones, and a loss of five per cent."""
    run = make_snapshot(make_arm(noise=noisy(-50_000)))

    seven, eight = (
        on_times(
            judge(
                run,
                make_snapshot(make_arm(noise=noisy(0, pairs=pairs))),
                policy("throughput:2%"),
            )
        )[0]
        for pairs in (7, 8)
    )

    assert seven.verdict == "INCONCLUSIVE"
    assert "the baseline has fewer than 8 passes" in seven.reason
    assert eight.verdict == "REGRESSED"


def test_one_of_many_cells_needs_more_evidence() -> None:
    """Holm: a loss that one cell in twenty shows by chance is not called a regression."""
    borderline = noisy(-7_000, sd_ppm=1_000)
    alone = make_snapshot(make_arm(noise=borderline))
    many = make_snapshot(
        make_arm(noise=borderline),
        *(make_arm(cell_id=f"page{n}", noise=noisy(0)) for n in range(2, 22)),
    )
    base = make_snapshot(*(make_arm(cell_id=f"page{n}", noise=KNOWN) for n in range(1, 22)))
    rule = policy("throughput:1.2%")

    one = on_times(judge(alone, make_snapshot(make_arm(noise=KNOWN)), rule))
    several = on_times(judge(many, base, rule))

    assert one[0].verdict == "REGRESSED", one[0].reason
    (doubtful,) = [f for f in several if f.cell_id == "page1"]
    assert doubtful.verdict == "INCONCLUSIVE"
    assert "Holm" in doubtful.reason
