"""`eaglebench list`: what each stored run measured, and what came out."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from eaglebench.bench.stored_run import open_run
from tests.stored_runs import invoke, make_results, scripted


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    """A folder whose `out` holds two runs of two cells, the second without tables."""
    make_results(tmp_path)
    with scripted(tmp_path):
        (open_run("latest", "out").path / "cells.csv").unlink()
        yield tmp_path


def listed(*args: str) -> list[dict[str, object]]:
    """The list for programs."""
    status, out, _ = invoke("list", "-o", "out", "--format", "json", *args)
    assert status == 0
    found = json.loads(out)
    assert isinstance(found, list)
    return found


@pytest.mark.usefixtures("here")
def test_the_list_holds_what_the_tables_hold() -> None:
    """Suite, models, cells, arms, labels, and each cell's and arm's length and rate."""
    done, other = listed()
    rows = [row.as_dict() for row in open_run("latest~1", "out").document.rows]

    assert (done["suite"], done["status"], done["arms"]) == ("tiny", "done", ["radix", "no-cache"])
    assert [name.partition("-")[0] for name in done["cells"]] == ["page1", "page16"]  # type: ignore[attr-defined]  # JSON
    assert list(done["labels"]) == ["note"]  # type: ignore[call-overload]  # JSON
    assert done["results"] == [
        {
            "cell_id": row["cell_id"],
            "arm": row["arm"],
            "acceptance_length": row["acceptance_length"],
            "tokens_per_s": row["tokens_per_s"],
        }
        for row in rows
    ]
    assert other["results"] == []


@pytest.mark.usefixtures("here")
def test_a_line_speaks_of_the_arm_with_a_cache() -> None:
    """What is not there is a dash, several cells are counted, labels are shown."""
    lengths = {each["acceptance_length"] for each in listed()[0]["results"]}  # type: ignore[attr-defined]  # JSON
    _, out, _ = invoke("list", "-o", "out", env={"COLUMNS": "300"})

    _, done, other = out.splitlines()
    assert len(lengths) == 1
    assert f" {lengths.pop():.3f} " in done
    assert "2 cells; radix,no-cache; note=" in done
    assert " - " in other


@pytest.mark.usefixtures("here")
def test_a_broken_run_is_listed_as_such() -> None:
    """Nothing is said of it that can't be read."""
    broken = open_run("latest~1", "out").path
    (broken / "run.json").write_text("{", encoding="utf-8")

    first = listed()[0]

    assert (first["run_id"], first["status"]) == (broken.name, "unreadable")
    assert first["suite"] is None
    assert "unreadable" in invoke("list", "-o", "out")[1]


@pytest.mark.usefixtures("here")
def test_a_profile_names_its_file() -> None:
    """Where it is to be opened from."""
    asked = ("run", "tiny", "-n", "1", "--progress", "none", "-o", "profiled")
    status, _, err = invoke(*asked, "--profile")

    trace = open_run("latest", "profiled").path / "trace.json"
    assert status == 0, err
    assert trace.is_file()
    assert f"chrome://tracing: {trace}\n" in err
    assert "trace" not in invoke(*asked)[2]


def test_a_folder_that_can_not_be_written_is_found_before_models_are_loaded(here: Path) -> None:
    """Nothing was computed for it."""
    (here / "taken").write_text("a file")

    status, out, err = invoke("run", "tiny", "-o", "taken")

    assert (status, out) == (1, "")
    assert "choose another --output-dir" in err
    assert "loading" not in err


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("columns", ["60", "80", "140"])
def test_nothing_of_a_run_is_lost_on_a_narrow_screen(columns: str) -> None:
    """Id, arms, length and status are there whole, whatever a label holds."""
    _, out, _ = invoke("list", "-o", "out", env={"COLUMNS": columns})

    assert all(str(run["run_id"]) in out for run in listed())
    assert out.count("done") == len(listed())
    assert "radix,no-cache" in out
    assert all(len(line) <= int(columns) for line in out.splitlines())
