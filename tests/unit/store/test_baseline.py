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
        (1, {"failed": float("nan")}, ":2: broken JSON: NaN is no number"),
        (1, {"failed": float("inf")}, ":2: broken JSON: Infinity is no number"),
        (1, {"failed": 1.5}, ":2: cell.failed"),
        (1, {"steps_by_q": [100, 100, 100]}, "not equally long"),
        (1, {"steps_by_q": [99, 100, 100, 100]}, "verify_steps is 400, its questions add to 399"),
        (1, {"num_drafts": 401}, ":2: cell: Value error, num_drafts is 401"),
        (1, {"accepted_at": [100, 200]}, ":2: .* can't be accepted more often"),
        (1, {"accepted_at": [401]}, ":2: .* can't be accepted more often"),
        (1, {"emitted_by_q": [800, 0, 0, 0], "steps_by_q": [0, 200, 100, 100]}, "no verify step"),
        (1, {"failed": 10**400}, ":2: cell.failed"),
        (1, {"counters": {"emitted": -800, "verify_steps": 400}}, ":2: cell.counters.emitted"),
        (1, {"surprise": 1}, "surprise"),
        (1, {"kind": "cake"}, "cake"),
        (3, {"passes": 1}, ":4: noise.passes"),
        (3, {"log_ratio_ppm": 10**9}, ":4: noise.log_ratio_ppm"),
        (3, {"info_tok_s": "12"}, ":4: noise.info_tok_s"),
        (3, {"arm": "unigram"}, ":4: page1 unigram has noise and no counts"),
        (0, {"al_definition": "output/verify_steps"}, ":1: header.al_definition"),
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"accepted": 401}, "accepted is 401, accepted_at adds to 400"),
        ({"drafted": 399}, "accepted is 400 of 399 drafted"),
        ({"overrun": 1}, "accepted . verify_steps - overrun is 799"),
        ({"output_tokens": 799}, "emitted is 800 of 799 tokens"),
        ({"num_drafts": 399}, "num_drafts is 400, its counter 399"),
    ],
)
def test_counters_that_contradict_each_other_are_refused(
    tmp_path: Path, changes: dict[str, int], message: str
) -> None:
    """The identities of an observation hold for its sums; a broken one is no PASS and no crash."""
    whole = {"accepted": 400, "drafted": 800, "overrun": 0, "output_tokens": 804, "num_drafts": 400}
    arm = make_arm(accepted_at=(250, 150), counters=whole)
    path = write_baseline(tmp_path, "toy", make_snapshot(arm), "because")
    assert read_baseline(path).arms[0].counters["accepted"] == 400
    counters = json.loads(path.read_text().splitlines()[1])["counters"]

    break_line(path, 1, counters=counters | changes)

    with pytest.raises(InputFileError, match=f":2: .*{message}"):
        read_baseline(path)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_byte_order_mark_is_passed_over(tmp_path: Path, ends: str) -> None:
    """Editors write one in front; what follows is the same baseline."""
    path = write(tmp_path)
    before = read_baseline(path)
    text = path.read_text()

    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", ends).encode())

    assert read_baseline(path) == before


def test_noise_without_an_arm_and_headers_alone_are_refused(tmp_path: Path) -> None:
    """A file that lost its lines is no baseline."""
    path = write(tmp_path)
    lines = path.read_text().splitlines()

    path.write_text(lines[0] + "\n")
    with pytest.raises(InputFileError, match="holds no counts"):
        read_baseline(path)
    path.write_text("\n".join([*lines, lines[3]]) + "\n")
    with pytest.raises(InputFileError, match=":5: page1 radix is there twice"):
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
