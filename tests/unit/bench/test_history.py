"""A metric over stored runs: changes against the same work alone."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eaglebench.bench import measure
from tests.fakes import Plant, ScriptedRuntime
from tests.stored_runs import invoke, scripted, write_questions

RUN = ("run", "tiny", "-o", "out", "--question-file", "questions.jsonl", "--progress", "none")


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Path]:
    """A run, one of other work, one like the first and one whose radix drafts wrongly."""
    write_questions(tmp_path / "questions.jsonl")
    with scripted(tmp_path) as patch:
        for plants, length in (([], "24"), ([], "8"), ([], "24"), ([Plant(word="keeps")], "24")):
            runtime = ScriptedRuntime({"radix": plants})
            patch.setattr(measure, "open_runtime", lambda _choice, made=runtime: made)
            status, _, err = invoke(*RUN, "--max-new-tokens", length)
            assert status == 0, err
        yield tmp_path / "out"


def rows(*options: str) -> list[dict[str, Any]]:
    """What `history` says in JSON."""
    status, out, err = invoke("history", *options, "-o", "out", "--format", "json")
    assert status == 0, err
    found: list[dict[str, Any]] = json.loads(out)
    return found


@pytest.mark.usefixtures("stored")
def test_a_change_is_against_the_run_of_the_same_work_before_it() -> None:
    """Other work between two runs does not part them; the first of each has no change."""
    changes = [row["change"] for row in rows("al", "--arm", "radix")]

    assert changes[:3] == [None, None, 0.0]
    assert changes[3] < 0
    steady = [row["change"] for row in rows("al", "--arm", "no-cache")]
    assert steady == [None, None, 0.0, 0.0]
    assert rows("verify_steps", "--arm", "radix")[3]["change"] > 0


@pytest.mark.usefixtures("stored")
def test_it_can_be_narrowed_and_written() -> None:
    """By suite, cell, arm and number; as a table, CSV and JSON of the same rows."""
    assert len(rows()) == 8
    assert len(rows("--last", "2")) == 4
    assert len(rows("--cell", "chunkoff", "--arm", "radix")) == 4
    status, out, _ = invoke("history", "-o", "out", "--format", "csv")
    assert status == 0
    assert [row["arm"] for row in csv.DictReader(io.StringIO(out))] == ["radix", "no-cache"] * 4
    status, out, _ = invoke("history", "-o", "out", env={"COLUMNS": "160"})
    assert status == 0
    assert "al over runs" in out


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("options", "status"),
    [(("nonsense",), 2), (("--suite", "other"), 5), (("--cell", "page7"), 5)],
)
def test_what_is_not_there_is_said(options: tuple[str, ...], status: int) -> None:
    """An unknown metric is a mistake; nothing to show is nothing measured."""
    assert invoke("history", *options, "-o", "out")[0] == status


@pytest.mark.usefixtures("stored")
def test_a_ratio_that_was_not_repeated_is_a_dash() -> None:
    """One pass has no ratio, which is not 0."""
    assert {row["value"] for row in rows("throughput")} == {None}
