"""Runs that differ in what was answered, in bookkeeping or in their setup, held together."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from eaglebench.bench import measure
from tests.fakes import Plant, ScriptedRuntime
from tests.stored_runs import QUESTIONS, invoke, scripted, write_questions

RUN = ("run", "tiny", "-o", "out", "--question-file", "questions.jsonl", "--progress", "none")


class Runs:
    """Runs in one folder, each by its name."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch

    def make(self, name: str, *options: str, runtime: ScriptedRuntime | None = None) -> str:
        """A run; its folder."""
        made = runtime or ScriptedRuntime()
        self.patch.setattr(measure, "open_runtime", lambda _choice: made)
        status, _, err = invoke(*RUN, "--max-new-tokens", "24", "-e", name, *options)
        assert status in {0, 5}, err
        (found,) = (self.folder / "out" / "runs").glob(f"*-{name}-*")
        return str(found)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    """A folder with questions and no run."""
    write_questions(tmp_path / "questions.jsonl")
    with scripted(tmp_path) as patch:
        yield Runs(tmp_path, patch)


class OtherHead(ScriptedRuntime):
    """The same target with a head of other weights, which guesses wrong where `keeps` is asked for."""

    def __init__(self) -> None:
        super().__init__({arm: [Plant(word="keeps")] for arm in ("radix", "no-cache")})
        self.info = replace(self.info, draft_sha256="9" * 64)


def compared(*names: str) -> tuple[int, str]:
    """Status and words of a comparison."""
    status, out, err = invoke("compare", *names, "-o", "out", env={"COLUMNS": "200"})
    return status, " ".join(out.split()) + err


def test_a_cache_that_never_hits_is_red(runs: Runs) -> None:
    """The same tokens in the same steps, and every prompt computed again."""
    good = runs.make("good")
    missing = runs.make("missing", "--arms", "force-miss,no-cache")

    status, out = compared(good, missing, "--as", "force-miss=radix")
    assert status == 3
    assert "cached_tokens" in out
    assert "over the same tokens" in out
    assert compared(missing, good, "--as", "radix=force-miss")[0] == 0


def test_only_what_both_answered_counts(runs: Runs) -> None:
    """Fewer questions, of which the rest is not pooled into either length."""
    whole, few = runs.make("whole"), runs.make("few", "-n", "1")
    status, out, _ = invoke("compare", whole, few, "--format", "json", "-o", "out")
    cells = json.loads(out)["cells"]

    assert status == 0
    assert {cell["acceptance_change"] for cell in cells} == {0.0}
    assert "1 question is in both, 2 are left out" in compared(whole, few)[1]


def test_the_direction_is_that_of_shared_turns(runs: Runs) -> None:
    """A loss in the one question that both have is red, whatever the others did."""
    whole = runs.make("whole")
    worse = ScriptedRuntime({"radix": [Plant(word=QUESTIONS[0])]})
    few = runs.make("few", "-n", "1", runtime=worse)

    assert compared(whole, few)[0] == 3


def test_latest_is_a_run_with_an_answer(runs: Runs) -> None:
    """A run whose every turn failed is passed over, and said to be."""
    good = runs.make("good")
    plants = [Plant(word="Tell", side="failed", output_index=1)]
    failed = runs.make(
        "failed",
        "--continue-on-error",
        runtime=ScriptedRuntime({"radix": plants, "no-cache": plants}),
    )

    status, _, err = invoke("show", "latest", "-o", "out")
    assert status == 0, err
    assert f"latest is {Path(good).name}" in err
    assert Path(failed).name in err
    assert invoke("show", failed, "-o", "out")[0] == 5
    assert invoke("show", "latest~1", "-o", "out")[0] == 2


def test_two_heads_are_compared_by_what_they_accept(runs: Runs) -> None:
    """In both directions; what differs is said, and nothing is claimed of other prompts."""
    one, other = runs.make("one"), runs.make("other", runtime=OtherHead())

    status, out = compared(one, other)
    assert status == 3
    assert "the setups differ" in out
    assert "draft_sha256: 999999999999..." in out
    assert "of others nothing is claimed below 30" in out
    status, out = compared(other, one)
    assert (status, "IMPROVED" in out) == (0, True)


@pytest.mark.parametrize("shape", [("--num-steps", "3"), ("--num-steps", "0")])
def test_shapes_are_compared_though_their_cells_have_other_names(
    runs: Runs, shape: tuple[str, ...]
) -> None:
    """More steps accept more; none at all one token a step."""
    two, other = runs.make("two"), runs.make("other", *shape)

    status, out = compared(two, other)
    assert status == (0 if shape[1] == "3" else 3), out
    assert "draft shape: page1-chunkoff-topk1-steps2-draft3 before" in out
    assert "in the later run" not in out
    assert compared(two, other)[0] == status


def test_temperatures_are_compared(runs: Runs) -> None:
    """Answers differ; the questions are the same."""
    greedy, drawn = runs.make("greedy"), runs.make("drawn", "--temperature", "0.7")
    status, out = compared(greedy, drawn)

    assert status in {0, 3}
    assert "temperature: 0.7 here, 0.0 in" in out


def test_other_work_is_refused_beside_another_setup(runs: Runs) -> None:
    """A shorter answer is other work, whatever the head."""
    one = runs.make("one")
    other = runs.make("other", "--max-new-tokens", "9", runtime=OtherHead())
    status, out = compared(one, other)

    assert status == 5
    assert "max_new_tokens" in out


def test_the_gate_names_an_arm_by_what_it_is_in_its_run(runs: Runs) -> None:
    """Judged as another one, it keeps its own numbers beside its verdict, in every format."""
    runs.make("good")
    assert invoke("baseline", "save", "odd", "-o", "out", "--reason", "x")[0] == 0
    worse = ScriptedRuntime({"unigram": [Plant(word="keeps")]})
    runs.make("both", "--arms", "radix,unigram,no-cache", runtime=worse)
    status, _, err = invoke(
        "gate",
        *("--baseline", "odd", "--as", "unigram=radix", "-o", "out"),
        env={"GITHUB_STEP_SUMMARY": "summary.md", "COLUMNS": "200"},
    )
    text = (runs.folder / "summary.md").read_text()

    assert status == 3, err
    red = [line for line in text.splitlines() if "REGRESSED" in line and "draft_forwards" in line]
    assert red
    assert all(" unigram draft_forwards: as radix: " in line for line in red)


def test_the_command_that_shows_the_cause_is_named_and_works(runs: Runs) -> None:
    """The first question that got worse, in both runs; none where nothing did."""
    good = runs.make("good")
    worse = runs.make("worse", runtime=ScriptedRuntime({"radix": [Plant(word="keeps")]}))

    _, text, _ = invoke("compare", good, worse, "-o", "out", "--format", "json")
    (command,) = json.loads(text)["commands"]
    status, out, err = invoke(*shlex.split(command)[1:])

    assert status == 0, err
    assert "draft-state: parts from radix" in " ".join(out.split())
    assert f"where and why: {command}" in compared(good, worse)[1]
    assert "where and why" not in compared(good, good)[1]
