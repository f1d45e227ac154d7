"""What may be compared: the same models by digest, the same prompts by digest."""

from dataclasses import replace

import pytest

from eaglebench.gate.comparable import other_prompts, workload_differences
from eaglebench.gate.decide import judge
from eaglebench.gate.policy import EXACT_RULES, Policy
from eaglebench.records.snapshot import ArmCounts, Snapshot
from tests.snapshots import make_arm, make_question, make_snapshot

EXACT = Policy(rules=EXACT_RULES)
DIGESTS = {"dtype": "float32", "target_sha256": "b" * 64, "draft_sha256": "c" * 64}


def asking(prompts_sha: str | None, count: int = 4) -> ArmCounts:
    """An arm whose first question asks this."""
    first = make_question("q0", prompts_sha=prompts_sha)
    return make_arm(questions=(first, *(make_question(f"q{n}") for n in range(1, count))))


def named(model: str, head: str | None, **exact: object) -> Snapshot:
    """A snapshot of models that were called so."""
    workload = {"model": model, "draft_model": head, "dtype": "float32"}
    return make_snapshot(workload=workload, exact=DIGESTS | exact)


def test_other_prompts_under_the_same_ids_are_not_comparable() -> None:
    """Whatever the counts say: the finding names the questions, and nothing else is judged."""
    judgement = judge(make_snapshot(asking("4" * 8)), make_snapshot(asking("3" * 8)), EXACT)

    (finding,) = judgement.findings
    assert judgement.verdict == "NOT_COMPARABLE"
    assert finding.questions == ("q0",)
    assert "1 of 4 questions ask something else" in finding.reason


def test_the_same_prompts_are_judged() -> None:
    """All digests agree."""
    assert judge(make_snapshot(asking("3" * 8)), make_snapshot(asking("3" * 8)), EXACT).verdict == (
        "PASS"
    )


def test_a_baseline_without_prompts_is_read_and_says_so() -> None:
    """Nothing is known, which is no difference and no agreement."""
    judgement = judge(make_snapshot(), make_snapshot(asking(None), name="old"), EXACT)

    assert not other_prompts(asking("4" * 8), asking(None))
    assert any("prompts not recorded in old" in note for note in judgement.notes)


@pytest.mark.parametrize(("model", "head"), [("copies/tiny", None), ("tiny", "copies/head")])
def test_the_same_files_under_another_path_are_comparable(model: str, head: str | None) -> None:
    """Models are what their digests say."""
    assert workload_differences(named(model, head), named("tiny", None)) == []


@pytest.mark.parametrize(
    ("digest", "option"),
    [
        ("target_sha256", "other weights of --model"),
        ("draft_sha256", "other weights of --draft-model"),
        ("target_config_sha256", "other config of --model"),
        ("draft_config_sha256", "other config of --draft-model"),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_other_files_under_the_same_name_are_not(digest: str, option: str, dtype: str) -> None:
    """On the same machine, across environments and in float64 alike."""
    known = {"target_config_sha256": "d" * 64, "draft_config_sha256": "e" * 64, "dtype": dtype}
    here = named("tiny", None, **(known | {digest: "f" * 64}))
    anywhere = replace(EXACT, across_environments=True)

    (reason,) = workload_differences(here, named("tiny", None, **known))
    assert option in reason
    assert judge(here, named("tiny", None, **known), anywhere).verdict == "NOT_COMPARABLE"


def test_a_digest_that_an_older_baseline_lacks_is_passed_over() -> None:
    """Configs had none; the weights still have to agree."""
    here = named("tiny", None, target_config_sha256="f" * 64)

    assert workload_differences(here, named("tiny", None)) == []


def test_another_suite_of_the_same_name_and_version_is_not_comparable() -> None:
    """Its digest says so."""
    judgement = judge(make_snapshot(suite_sha256="f" * 64), make_snapshot(), EXACT)

    assert judgement.verdict == "NOT_COMPARABLE"
    assert "suite_sha256" in judgement.findings[0].reason


@pytest.mark.parametrize("changes", [{"question_file": "b.jsonl"}, {"question_fields": {"a": "b"}}])
def test_where_questions_come_from_does_not_matter_once_they_are_known(
    changes: dict[str, object],
) -> None:
    """The same questions in another file; without digests the file's name is all there is."""
    plain = {"question_file": "a.jsonl", "question_fields": {}, "dtype": "float32"}
    here = make_snapshot(workload=plain | changes)

    assert workload_differences(here, make_snapshot(workload=plain)) == []
    assert workload_differences(here, make_snapshot(asking(None), workload=plain))


def test_more_questions_than_the_baseline_are_other_questions() -> None:
    """As fewer are; the finding counts both, and names the odd ones."""
    judgement = judge(make_snapshot(asking("3" * 8, 5)), make_snapshot(asking("3" * 8)), EXACT)

    (finding,) = judgement.findings
    assert (finding.verdict, finding.questions) == ("NOT_COMPARABLE", ("q4",))
    assert "5 questions, the baseline has 4" in finding.reason


@pytest.mark.parametrize("failed", [1, 2, 3])
def test_a_single_turn_that_fails_now_is_a_failure(failed: int) -> None:
    """However many questions went well."""
    judgement = judge(
        make_snapshot(make_arm(failed=failed)), make_snapshot(make_arm(failed=0)), EXACT
    )

    assert judgement.verdict == "FAILED"
    assert f"{failed} turn{'s' if failed > 1 else ''} failed" in judgement.findings[0].reason


@pytest.mark.parametrize(
    ("here", "there", "count"),
    [("latest", "runs/a", 0), ("latest", None, 1), (None, "latest", 1)],
)
def test_replays_are_compared_by_what_they_give(
    here: str | None, there: str | None, count: int
) -> None:
    """Two names of given answers are passed over; a replay and none are other work."""
    mine, theirs = (make_snapshot(workload={"replay": name}) for name in (here, there))

    assert len(workload_differences(mine, theirs)) == count


def test_a_config_said_otherwise_differs_from_a_baseline_that_knows_no_such_thing() -> None:
    """In one that is too old for the option nothing was said otherwise."""
    usual = {"max_new_tokens": 64, "dtype": "float32"}
    here = make_snapshot(workload={**usual, "draft_config": {"rope_theta": 300}})
    same = make_snapshot(workload={**usual, "draft_config": None})

    (reason,) = workload_differences(here, make_snapshot(workload=usual))

    assert reason == "draft_config: {'rope_theta': 300} here, not given in run"
    assert workload_differences(same, make_snapshot(workload=usual)) == []
