"""Run folders: names, atomic writes, broken files, a disk that refuses."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eaglebench.errors import InputFileError, StorageError, UsageError
from eaglebench.records.counters import Counters
from eaglebench.records.observation import RequestTimes, VerifyStep
from eaglebench.store.decode import measured_turns
from eaglebench.store.finalize import write_cells_csv, write_index, write_tables
from eaglebench.store.lines import write_json
from eaglebench.store.run_folder import RunFolder, find_run, list_runs, slug
from tests.fakes import ScriptedRuntime
from tests.sessions import NOW, make_folder, make_session, make_talks

TIMES = tuple(RequestTimes.__dataclass_fields__)


def make_run(root: Path) -> RunFolder:
    """A finished toy run."""
    folder = make_folder(root)
    make_session(ScriptedRuntime(), folder, make_talks(2)).run()
    folder.set_status("done")
    return folder


def edit_last_line(path: Path, change: dict[str, Any], *, drop: str | None = None) -> None:
    """Change fields of the last line of a JSONL file."""
    *head, last = path.read_text().splitlines()
    record = json.loads(last)
    for name, value in change.items():
        place = record.get("counters", record) if name in Counters.names() else record
        place[name] = value
    record.pop(drop, None)
    record.get("counters", {}).pop(drop, None)
    path.write_text("\n".join([*head, json.dumps(record)]) + "\n")


@pytest.mark.parametrize(
    "name",
    ["meta/llama:8b", "..\\x", "a|b", "CON", "x" * 300, "two words", "dot.", "größe", "..", ""],
)
def test_any_name_makes_a_safe_folder(tmp_path: Path, name: str) -> None:
    """It stays inside the results folder and is short."""
    folder = RunFolder.create(tmp_path, name, {}, NOW)

    assert folder.path.parent == tmp_path / "runs"
    assert len(folder.run_id) < 120
    assert set(slug(name)) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
    )


def test_two_runs_in_a_second_do_not_collide(tmp_path: Path) -> None:
    """The second gets a name of its own, and comes later in the list."""
    first, second = make_folder(tmp_path), make_folder(tmp_path)

    assert first.path != second.path
    assert [run.run_id for run in list_runs(tmp_path)] == [first.run_id, second.run_id]


def test_runs_are_found_by_id_path_and_age(tmp_path: Path) -> None:
    """Also `latest~1`; what isn't there is a usage error."""
    first, second = make_folder(tmp_path), make_folder(tmp_path)

    assert find_run(tmp_path, "latest").path == second.path
    assert find_run(tmp_path, "latest~1").path == first.path
    assert find_run(tmp_path, first.run_id).path == first.path
    assert find_run(tmp_path, str(first.path)).path == first.path
    for missing in ("latest~2", "nothing", "", ".."):
        with pytest.raises(UsageError):
            find_run(tmp_path, missing)


def test_tables_hold_what_the_lines_held(tmp_path: Path) -> None:
    """Steps move from lines into a table and are read from there; nothing changes."""
    folder = make_run(tmp_path)
    before = measured_turns(folder)
    write_tables(folder)

    assert measured_turns(folder) == before
    assert not (folder.path / "steps.jsonl").exists()
    names = {path.name for path in folder.path.iterdir()}
    assert {"requests.parquet", "steps.parquet", "prompts.jsonl"} <= names
    assert not [name for name in names if name.endswith(".tmp")]


def test_tables_can_be_written_twice(tmp_path: Path) -> None:
    """A resumed run appends to what is a table already."""
    folder = make_run(tmp_path)
    write_tables(folder)
    steps = folder.steps()
    write_tables(folder)

    assert folder.steps() == steps


def test_a_cut_last_line_is_dropped_with_a_notice(tmp_path: Path) -> None:
    """The others are read."""
    folder = make_run(tmp_path)
    path = folder.path / "requests.jsonl"
    count = len(folder.turns())
    path.write_bytes(path.read_bytes()[:-30])

    assert len(folder.turns()) == count - 1
    assert folder.notices() == ["requests.jsonl: dropped a last line that was cut off"]


@pytest.mark.parametrize(
    "garbage", [b"<html></html>\n", b"[]\n", b"{}\n", b"\xff\xfe\n", b"log: x\n{}\n"]
)
def test_garbage_is_named_with_file_and_line(tmp_path: Path, garbage: bytes) -> None:
    """And with what was expected."""
    folder = make_run(tmp_path)
    (folder.path / "requests.jsonl").write_bytes(garbage)

    with pytest.raises(InputFileError, match=r"requests\.jsonl:1: expected a MeasuredTurn"):
        folder.turns()


@pytest.mark.parametrize("name", ["output_tokens", "prompt_tokens", "accepted_per_step"])
def test_a_line_that_lacks_a_field_is_refused(tmp_path: Path, name: str) -> None:
    """The message names the field."""
    folder = make_run(tmp_path)
    edit_last_line(folder.path / "requests.jsonl", {}, drop=name)

    with pytest.raises(InputFileError, match=name):
        folder.turns()


@pytest.mark.parametrize("name", ["output_tokens", "accepted", "verify_steps", "overrun"])
def test_counts_that_disagree_are_refused(tmp_path: Path, name: str) -> None:
    """Every record keeps the identities of its counters."""
    folder = make_run(tmp_path)
    value = getattr(folder.turns()[-1].counters, name)
    edit_last_line(folder.path / "requests.jsonl", {name: value + 1})

    with pytest.raises(InputFileError, match="counts disagree"):
        folder.turns()


@pytest.mark.parametrize("version", [0, 99, None, "1", True])
def test_other_schema_versions_are_refused(tmp_path: Path, version: object) -> None:
    """With both versions named."""
    folder = make_run(tmp_path)
    manifest = json.loads((folder.path / "run.json").read_text())
    (folder.path / "run.json").write_text(json.dumps(manifest | {"schema_version": version}))

    with pytest.raises(InputFileError, match="reads 1"):
        folder.manifest()


@pytest.mark.parametrize("content", ["", "[]", "{}", "<html>", "null", "{"])
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    """No traceback."""
    folder = make_run(tmp_path)
    (folder.path / "run.json").write_text(content)

    with pytest.raises(InputFileError):
        folder.manifest()


@pytest.mark.parametrize("name", ["status", "config", "suite", "models"])
def test_a_manifest_that_lacks_a_field_is_refused(tmp_path: Path, name: str) -> None:
    """The message names it."""
    folder = make_run(tmp_path)
    manifest = json.loads((folder.path / "run.json").read_text())
    del manifest[name]
    (folder.path / "run.json").write_text(json.dumps(manifest))

    with pytest.raises(InputFileError, match=name):
        folder.manifest()


def test_a_refused_write_keeps_the_old_file(tmp_path: Path) -> None:
    """The message names path and cause; no temporary file stays."""
    path = tmp_path / "run.json"
    path.mkdir()  # stands for a disk that refuses, also for root
    with pytest.raises((StorageError, OSError), match=r"run\.json"):
        write_json(path, {"new": 2})

    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_a_storage_error(tmp_path: Path) -> None:
    """Finished blocks stay, and the message names the file and the cause."""
    folder = make_folder(tmp_path)
    session = make_session(ScriptedRuntime(), folder, make_talks(1))
    # After the session has looked what is there: reading /dev/full never ends.
    (folder.path / "requests.jsonl").symlink_to("/dev/full")

    with pytest.raises(StorageError, match=r"requests\.jsonl can't be written: No space left"):
        session.run()


def test_a_folder_that_vanished_is_a_storage_error(tmp_path: Path) -> None:
    """Not a traceback."""
    folder = make_folder(tmp_path)
    (folder.path / "run.json").unlink()
    folder.path.rmdir()

    with pytest.raises(StorageError):
        make_session(ScriptedRuntime(), folder, make_talks(1)).run()


def test_results_folder_that_is_a_file_is_a_storage_error(tmp_path: Path) -> None:
    """With advice."""
    (tmp_path / "results").write_text("")

    with pytest.raises(StorageError, match="can't be made"):
        RunFolder.create(tmp_path / "results", "x", {}, NOW)


def test_index_can_be_made_anew(tmp_path: Path) -> None:
    """One line a readable run."""
    make_run(tmp_path)
    broken = make_folder(tmp_path)
    (broken.path / "run.json").write_text("{")
    write_index(tmp_path)

    (line,) = (tmp_path / "index.jsonl").read_text().splitlines()
    assert json.loads(line)["status"] == "done"


def test_cells_csv_keeps_commas_and_newlines(tmp_path: Path) -> None:
    """What goes in comes out."""
    import csv

    folder = make_folder(tmp_path)
    write_cells_csv(folder, [{"cell_id": "a,b\nç", "arm": "radix", "speed": None}])

    with (folder.path / "cells.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == [{"cell_id": "a,b\nç", "arm": "radix", "speed": ""}]


def test_a_counter_that_an_older_version_lacks_was_not_measured(tmp_path: Path) -> None:
    """It is not 0, nor is a sum with it."""
    folder = make_run(tmp_path)
    edit_last_line(folder.path / "requests.jsonl", {}, drop="accepted")
    counts = folder.turns()[-1].counters

    assert (counts.accepted, counts.emitted, counts.acceptance_length) == (None, None, None)
    assert Counters.total(turn.counters for turn in folder.turns()).accepted is None


def test_a_knob_that_an_older_version_lacks_stood_where_it_stands_unsaid(tmp_path: Path) -> None:
    """What went first before it could be chosen is what goes first by default."""
    folder = make_run(tmp_path)
    path = folder.path / "requests.jsonl"
    knobs = json.loads(path.read_text().splitlines()[-1])["knobs"]
    assert knobs.pop("eviction_policy") == "lru"
    before = folder.turns()
    edit_last_line(path, {"knobs": knobs})

    assert folder.turns() == before


def test_a_counter_of_a_newer_version_is_named_and_left_out(tmp_path: Path) -> None:
    """The others are read."""
    folder = make_run(tmp_path)
    before = folder.turns()
    path = folder.path / "requests.jsonl"
    counters = json.loads(path.read_text().splitlines()[-1])["counters"]
    edit_last_line(path, {"counters": counters | {"surprise": 1}})

    assert folder.turns() == before
    assert folder.notices() == [
        "requests.jsonl: fields of another version are not shown: counters.surprise"
    ]


def test_fields_of_a_newer_version_are_named_and_left_out(tmp_path: Path) -> None:
    """What this version does not know changes nothing that it does know."""
    folder = make_run(tmp_path)
    before = folder.turns()
    edit_last_line(folder.path / "requests.jsonl", {"surprise": 1, "more": [2]})

    assert folder.turns() == before
    assert folder.notices() == [
        "requests.jsonl: fields of another version are not shown: surprise, more"
    ]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("requests.jsonl", {"cached_tokens": -1}, "cached_tokens is -1"),
        ("requests.jsonl", {"times": dict.fromkeys(TIMES, -0.5)}, "queue_s is -0.5"),
        ("requests.jsonl", {"prompt_token_ids": [1, -2]}, "prompt_token_ids is"),
        ("requests.jsonl", {"evictions": 10**300}, "evictions"),
        ("requests.jsonl", {"evictions": "many"}, "evictions"),
        ("requests.jsonl", {"accepted": 10**6}, "counts disagree"),
        ("blocks.jsonl", {"wall_s": -1.0}, "wall_s is -1.0"),
        ("blocks.jsonl", {"wall_s": float("nan")}, "wall_s is nan"),
        ("steps.jsonl", {"position": -1}, "negative"),
        ("steps.jsonl", {"accepted": 99}, "accepted is 99 of 2 drafted"),
        ("steps.jsonl", {"parents": [-1, 1]}, "follows one that comes later"),
        ("steps.jsonl", {"parents": [-1]}, "1 parents of 2 drafted"),
    ],
)
def test_lines_that_contradict_themselves_are_refused(
    tmp_path: Path, name: str, change: dict[str, Any], message: str
) -> None:
    """With file and line, also where the line is the last one."""
    folder = make_run(tmp_path)
    path = folder.path / name
    edit_last_line(path, change)
    path.write_text(path.read_text().rstrip("\n"))

    with pytest.raises(InputFileError, match=message) as caught:
        (folder.turns(), folder.blocks(), folder.steps())
    assert f"{name}:{len(path.read_text().splitlines())}:" in caught.value.message


def test_a_table_of_steps_is_checked_row_by_row(tmp_path: Path) -> None:
    """One row of a wrong value, a missing column and a new one."""
    folder = make_run(tmp_path)
    write_tables(folder)
    path = folder.path / "steps.parquet"
    table = pq.read_table(path)

    pq.write_table(table.append_column("surprise", pa.array([1] * len(table))), path)
    assert folder.notices() == ["steps.parquet: fields of another version are not shown: surprise"]
    assert len(folder.steps()) == len(folder.turns())
    pq.write_table(table.drop_columns(["position"]), path)
    with pytest.raises(InputFileError, match="row 1: position"):
        folder.steps()
    places = table.column("position").to_pylist()
    wrong = table.drop_columns(["position"]).append_column("position", pa.array([*places[:-1], -1]))
    pq.write_table(wrong, path)
    with pytest.raises(InputFileError, match=f"row {len(places)}: a count or a position is neg"):
        folder.steps()
    lost = table.drop_columns(["position"]).append_column(
        "position", pa.array([*places[:-1], None])
    )
    pq.write_table(lost, path)
    with pytest.raises(InputFileError, match=f"row {len(places)}: position"):
        folder.steps()


def test_runs_of_one_second_are_ordered_by_their_manifests(tmp_path: Path) -> None:
    """The id's last digits say nothing about time."""
    made = [make_folder(tmp_path) for _ in range(4)]
    for number, folder in enumerate(made):
        folder.set_status("done", started=f"2026-11-30T02:13:00.{900 - number:03}")

    assert [run.run_id for run in list_runs(tmp_path)] == [f.run_id for f in made[::-1]]


def test_a_gap_that_is_no_number_is_written_as_null_and_read_again(tmp_path: Path) -> None:
    """JSON has no NaN; the turn and its counts are there, in lines and in tables."""
    folder = make_run(tmp_path)
    edit_last_line(folder.path / "steps.jsonl", {"target_gaps": [None, 1.0, None]})

    last = measured_turns(folder)[-1].steps[-1]
    write_tables(folder)
    again = measured_turns(folder)[-1].steps[-1]

    assert [str(gap) for gap in last.target_gaps] == ["nan", "1.0", "nan"]
    assert [str(gap) for gap in again.target_gaps] == ["nan", "1.0", "nan"]


@pytest.mark.parametrize("gap", [float("nan"), float("inf"), -float("inf")])
def test_what_is_written_can_be_read_back_whatever_the_gaps(tmp_path: Path, gap: float) -> None:
    """Gaps that are no finite number become null before a line is made."""
    step = VerifyStep(
        position=7,
        drafted_ids=(1,),
        target_ids=(1, 2),
        accepted=1,
        emitted=2,
        target_gaps=(gap, 0.5),
        draft_gaps=(gap,),
    )
    folder = make_run(tmp_path)
    turn, block = folder.turns()[0], folder.blocks()[0]
    folder.append([replace(turn, steps=(step,), prefill_gap=gap)], block)

    stored = json.loads((folder.path / "steps.jsonl").read_text().splitlines()[-1])
    assert (stored["target_gaps"], stored["draft_gaps"]) == ([None, 0.5], [None])
    assert folder.turns()[0].prefill_gap is None
    again = folder.steps()[turn.key][0]
    assert [str(g) for g in again.target_gaps + again.draft_gaps] == ["nan", "0.5", "nan"]
