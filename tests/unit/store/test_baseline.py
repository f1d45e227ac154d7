"""Baselines on disk: what is written comes back, and nothing broken is believed."""

import json
from pathlib import Path

import pytest

from eaglebench.errors import InputFileError, NothingMeasuredError, UsageError
from eaglebench.store.baseline import (
    MOST_BYTES,
    find_baseline,
    list_baselines,
    read_baseline,
    write_baseline,
)
from tests.snapshots import make_arm, make_question, make_snapshot


def write(root: Path) -> Path:
    """A baseline of two arms."""
    return write_baseline(root, "toy", make_snapshot(), "because")


def test_a_baseline_comes_back_as_it_was(tmp_path: Path) -> None:
    """Counts, questions, noise, fingerprints and reason."""
    snapshot = make_snapshot(make_arm(), make_arm("no-cache"), name="toy")

    read = read_baseline(write_baseline(tmp_path, "toy", snapshot, "because"))

    assert sorted(read.arms, key=lambda a: a.key) == sorted(snapshot.arms, key=lambda a: a.key)
    assert (read.exact, read.timing, read.workload) == (
        snapshot.exact,
        snapshot.timing,
        snapshot.workload,
    )
    assert read.reason == "because"


def test_one_changed_cell_is_one_changed_line(tmp_path: Path) -> None:
    """Fit for git: sorted, one line a cell."""
    before = write(tmp_path).read_text().splitlines()
    questions = (make_question("q0", steps=99), *(make_question(f"q{n}") for n in range(1, 4)))
    changed = make_snapshot(make_arm(questions=questions), make_arm("no-cache"))
    after = write_baseline(tmp_path, "toy", changed, "because").read_text().splitlines()

    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_eighty_questions_in_twenty_cells_stay_small(tmp_path: Path) -> None:
    """Under the limit; what is larger is refused and nothing is written."""
    questions = tuple(make_question(f"{n}") for n in range(80))
    cells = [make_arm(questions=questions, cell_id=f"page{n}") for n in range(20)]

    path = write_baseline(tmp_path, "many", make_snapshot(*cells), "because")

    assert path.stat().st_size < MOST_BYTES
    huge = [make_arm(questions=questions, cell_id=f"page{n}") for n in range(90)]
    with pytest.raises(UsageError, match="bytes, more than"):
        write_baseline(tmp_path, "huge", make_snapshot(*huge), "because")
    assert list_baselines(tmp_path) == ["many"]


def test_a_missing_baseline_offers_near_names(tmp_path: Path) -> None:
    """With its own exit status, before any work."""
    write(tmp_path)

    with pytest.raises(NothingMeasuredError) as caught:
        find_baseline(tmp_path, "toi")
    assert caught.value.hint == "did you mean toy?"
    with pytest.raises(NothingMeasuredError, match="no baseline 'x'") as caught:
        find_baseline(tmp_path / "empty", "x")
    assert "baseline save" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["meta/llama:8b", "..\\x", "a|b", "x" * 300, "ü b "])
def test_odd_names_stay_in_the_folder(tmp_path: Path, name: str) -> None:
    """A name never becomes a path."""
    path = write_baseline(tmp_path, name, make_snapshot(), "because")

    assert path.parent == tmp_path / "baselines"
    assert find_baseline(tmp_path, name) == path


def break_line(path: Path, number: int, **changes: object) -> None:
    """Change fields of one line."""
    lines = path.read_text().splitlines()
    document = json.loads(lines[number])
    document.update(changes)
    lines[number] = json.dumps(document)
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("number", "changes", "message"),
    [
        (0, {"schema_version": 99}, ":1: schema version 99"),
        (0, {"schema_version": "1"}, ":1: schema version '1'"),
        (0, {"schema_version": None}, ":1: schema version None"),
        (0, {"questions": ["q0"]}, "has 4 questions, 1 are named"),
        (0, {"questions": ["q0", "q0", "q1", "q2"]}, "a question is named twice"),
        (1, {"failed": -1}, ":2: cell.failed"),
        (1, {"failed": "3"}, ":2: cell.failed"),
        (1, {"failed": float("nan")}, ":2: is no JSON: NaN is no number"),
        (1, {"failed": float("inf")}, ":2: is no JSON: Infinity is no number"),
        (1, {"failed": 1.5}, ":2: cell.failed"),
        (1, {"steps_by_q": [100, 100, 100]}, "not equally long"),
        (1, {"steps_by_q": [99, 100, 100, 100]}, "verify_steps is 400, its questions add to 399"),
        (1, {"surprise": 1}, "surprise"),
        (1, {"kind": "cake"}, "cake"),
        (3, {"pairs": 1}, ":4: noise.pairs"),
    ],
)
def test_a_changed_baseline_is_refused_with_its_line(
    tmp_path: Path, number: int, changes: dict[str, object], message: str
) -> None:
    """Edited by hand, of another schema, or holding what is no count."""
    path = write(tmp_path)
    break_line(path, number, **changes)

    with pytest.raises(InputFileError, match=message):
        read_baseline(path)


@pytest.mark.parametrize("text", ["", "[]\n", "{}\n", "<html>\n", '{"kind": "cell"}\n', "\x00\n"])
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    """Also a file that only looks like one."""
    path = tmp_path / "x.jsonl"
    path.write_text(text)

    with pytest.raises(InputFileError):
        read_baseline(path)


def test_a_line_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """A merge that kept both sides is seen."""
    path = write(tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[1]]) + "\n")

    with pytest.raises(InputFileError, match="is there twice"):
        read_baseline(path)
