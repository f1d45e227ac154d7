"""Several runs in one table: heads, temperatures and commits, each against the first."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eaglebench.backends.seam import Runtime
from eaglebench.bench import api, measure
from eaglebench.bench.side_by_side import hold_side_by_side
from eaglebench.bench.stored_run import list_runs
from eaglebench.errors import UsageError
from eaglebench.records.models import ModelChoice
from tests.fakes import Plant, ScriptedRuntime
from tests.stored_runs import invoke, scripted, write_questions

RUN = ("run", "tiny", "-o", "out", "--question-file", "questions.jsonl", "--max-new-tokens", "24")
QUIET = ("--progress", "none")


class OtherHead(ScriptedRuntime):
    """A head that guesses wrong once where `keeps` is asked for."""

    def __init__(self, name: str) -> None:
        plants = {arm: [Plant(word="keeps")] for arm in ("radix", "no-cache")}
        super().__init__(plants if name == "worse" else {})
        self.info = replace(self.info, draft_id=name, draft_sha256=(name * 64)[:64])


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[list[str]]:
    """Names of the heads that were loaded; `worse` is one that accepts less."""
    write_questions(tmp_path / "questions.jsonl")
    names: list[str] = []

    def open_runtime(choice: ModelChoice) -> Runtime:
        name = Path(choice.draft_name or "none").name
        names.append(name)
        return OtherHead(name)

    with scripted(tmp_path) as patch:
        patch.setattr(measure, "resolve_model", lambda name, **_: Path(name))
        patch.setattr("eaglebench.bench.prepare.check_model_name", lambda _name: None)
        patch.setattr(measure, "open_runtime", open_runtime)
        yield names


def test_two_heads_are_two_runs_in_one_table(opened: list[str]) -> None:
    """Each is a whole run; the second's length is held against the first on the same questions."""
    status, out, err = invoke(*RUN, *QUIET, "--draft-model", "good,worse")

    assert status == 0, err
    assert opened == ["good", "worse"]
    good, worse = list_runs("out")
    found = hold_side_by_side([good, worse])
    mine = {(row.name, row.arm): row for row in found.rows}
    for run, name in ((good, "good"), (worse, "worse")):
        for row in run.document.rows:
            assert mine[name, row.arm].length == row.counts.acceptance_length
    first, second = mine["good", "radix"], mine["worse", "radix"]
    assert first.change is None
    assert first.length is not None
    assert second.length is not None
    assert second.change == pytest.approx(second.length / first.length - 1)
    assert second.length < first.length
    assert second.verdict == "REGRESSED"
    assert "2 runs side by side" in out
    assert f"worse: {worse.run_id}" in out
    assert f"accepted most: good, {first.length:.3f}" in out
    assert "verdict" not in out  # a head beside another one is no verdict on it


def test_no_speculation_beside_them_says_what_each_gains(opened: list[str]) -> None:
    """The ratio is the one of that head's own run, over plain decoding."""
    status, out, err = invoke(
        *RUN, *QUIET, "--draft-model", "good,worse", "--num-speculative-tokens", "0,2"
    )

    assert status == 0, err
    assert len(opened) == 2
    runs = list_runs("out")
    rows = {(r.run_id, r.cell_id): r for r in hold_side_by_side(runs).rows if r.arm == "radix"}
    for run in runs:
        (sweep,) = run.document.sweeps
        assert sweep.plain is not None
        for cell in sweep.cells:
            gain = rows[run.run_id, cell.cell_id].gain
            is_plain = cell.cell_id == sweep.plain.cell_id
            assert gain == (None if is_plain else sweep.gains[cell.cell_id])
    assert "gains most over no speculation: " in out
    assert "(1 pass)" in out


def test_for_programs_it_is_one_document(opened: list[str]) -> None:
    """Every run as `run --format json` writes one, and the rows of the table."""
    status, out, _ = invoke(*RUN, *QUIET, "--temperature", "0,0.7", "--format", "json")

    document: dict[str, Any] = json.loads(out)
    assert status == 0
    assert len(opened) == len(document["runs"]) == 2
    assert [run["run"]["config"]["temperature"] for run in document["runs"]] == [0.0, 0.7]
    assert [row["setup"] for row in document["setups"][::2]] == [
        {"temperature": "0"},
        {"temperature": "0.7"},
    ]


def test_everything_wrong_is_found_before_anything_runs(opened: list[str]) -> None:
    """The last of three can't be; nothing is loaded, and it is named."""
    status, _, err = invoke(*RUN, *QUIET, "--temperature", "0,0.5,-1")

    assert status == 2
    assert "--temperature -1" in err
    assert opened == []
    assert not Path("out").exists()


def test_a_dry_run_shows_each(opened: list[str]) -> None:
    """By name, in words and as JSON."""
    lists = (*RUN, "--temperature", "0,0.5", "--dry-run")
    _, out, _ = invoke(*lists)
    _, text, _ = invoke(*lists, "--format", "json")

    assert "--temperature 0\n" in out
    assert "--temperature 0.5\n" in out
    assert [each["setup"] for each in json.loads(text)] == ["--temperature 0", "--temperature 0.5"]
    assert opened == []


def test_an_interrupt_says_what_was_not_begun(opened: list[str]) -> None:
    """What was finished is kept and named."""

    def interrupt(choice: ModelChoice) -> Runtime:
        opened.append(str(choice.draft_name))
        if len(opened) == 2:
            raise KeyboardInterrupt
        return OtherHead("good")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "open_runtime", interrupt)
        status, _, err = invoke(*RUN, *QUIET, "--draft-model", "a,b,c")

    assert status == 130
    assert "not begun: --draft-model c" in err
    assert len(list_runs("out")) == 1


def test_compare_takes_more_than_two(opened: list[str]) -> None:
    """Each against the first, with a verdict; what differs stands in the table's head."""
    assert invoke(*RUN, *QUIET, "--draft-model", "good,other,worse")[0] == 0
    runs = [run.run_id for run in list_runs("out")]

    status, out, _ = invoke("compare", *runs, "-o", "out")
    assert len(opened) == 3
    assert status == 3
    assert "draft-model" in out
    assert "1 REGRESSED, 3 PASS" in " ".join(out.split())
    status, text, _ = invoke("compare", *runs, "-o", "out", "--format", "json")
    document = json.loads(text)
    assert status == 3
    assert {row["setup"]["draft_model"] for row in document["rows"]} == {"good", "other", "worse"}
    status, _, err = invoke("compare", *runs, "-o", "out", "--as", "radix=no-cache")
    assert status == 2
    assert "--as needs two runs" in err


def test_a_path_with_a_comma_is_one_head(opened: list[str]) -> None:
    """What exists is not taken apart."""
    Path("a,b").mkdir()

    assert invoke(*RUN, *QUIET, "--draft-model", "a,b")[0] == 0
    assert opened == ["a,b"]


def test_an_option_file_may_hold_a_list(opened: list[str]) -> None:
    """As on the command line."""
    Path("options.toml").write_text('draft_model = ["good", "worse"]\n', encoding="utf-8")

    assert invoke(*RUN, *QUIET, "--config", "options.toml")[0] == 0
    assert opened == ["good", "worse"]


@pytest.mark.parametrize("command", ["diagnose", "calibrate"])
def test_where_there_is_one_run_a_list_is_refused(opened: list[str], command: str) -> None:
    """By name, and by Python's entry as well."""
    status, _, err = invoke(command, "tiny", "--temperature", "0,1")

    assert status == 2
    assert "--temperature" in err
    with pytest.raises(UsageError, match="--draft-model has 2 values"):
        api.run("tiny", draft_model=["good", "worse"], output_dir="out")
    assert opened == []
