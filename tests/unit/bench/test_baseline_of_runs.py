"""A baseline of several runs: which count, what is kept of them, and what is refused."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from eaglebench.bench.stored_run import list_runs
from tests.stored_runs import invoke, scripted, write_questions

RUN = ("run", "tiny", "-o", "out", "--question-file", "questions.jsonl", "--max-new-tokens", "8")
SAVE = ("baseline", "save", "odd", "-o", "out", "--reason", "several", "--runs")


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[None]:
    """Three runs of one kind, and one of another between them."""
    write_questions(tmp_path / "questions.jsonl")
    with scripted(tmp_path):
        for options in ((), (), ("--max-new-tokens", "9"), ()):
            status, _, err = invoke(*RUN, "--passes", "8", "--progress", "none", *options)
            assert status == 0, err
        yield


@pytest.mark.usefixtures("measured")
def test_the_noise_is_that_of_all_runs() -> None:
    """The newest run and the two before it that did the same work."""
    status, _, err = invoke(*SAVE, "3")
    assert status == 0, err
    lines = [json.loads(t) for t in Path("out/baselines/odd.jsonl").read_text().splitlines()]
    (noise,) = [line for line in lines if line["kind"] == "noise"]

    assert (noise["runs"], noise["passes"]) == (3, 8)
    assert noise["run_sd_ppm"] >= 0
    assert invoke("baseline", "show", "odd", "-o", "out")[0] == 0


@pytest.mark.usefixtures("measured")
def test_too_few_runs_are_refused() -> None:
    """Runs of other options don't count; nothing is written."""
    status, _, err = invoke(*SAVE, "4")

    assert status == 2
    assert "3 runs of this work" in err
    assert "expected 4" in err
    assert not Path("out/baselines").exists()


@pytest.mark.usefixtures("measured")
def test_runs_of_other_counts_are_no_repetitions() -> None:
    """An eviction more in one of them, and the two are named."""
    first = list_runs("out")[0].path
    path = first / "requests.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["counters"]["evictions"] += 1
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    status, _, err = invoke(*SAVE, "3")

    assert status == 2
    assert "have other counts" in err
    assert first.name in err
