"""An arm against itself: one run a dtype, and no question flipped where nothing is random."""

from pathlib import Path

import pytest

from tests.stored_runs import invoke, scripted, write_questions


def test_each_dtype_is_one_run_of_an_arm_beside_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table has a line a dtype and cell; identical passes give one acceptance length."""
    write_questions(tmp_path / "questions.jsonl")
    monkeypatch.setenv("EAGLEBENCH_QUESTION_FILE", "questions.jsonl")
    options = ("--parallel", "1,2", "--passes", "2", "--max-new-tokens", "8", "--progress", "none")
    with scripted(tmp_path):
        status, out, err = invoke("calibrate", "tiny", "-o", "out", *options)
        _, listed, _ = invoke("list", "-o", "out")

    assert status == 0, err
    assert "radix,radix:again" in listed
    assert "A against A" in out
    assert out.count(": acceptance length") == out.count("(4 x)") == 2
    assert "flipped:" not in out


def test_numbers_are_checked_before_anything_runs(tmp_path: Path) -> None:
    """`--parallel x` is refused with status 2, and no run is begun."""
    with scripted(tmp_path):
        status, _, err = invoke("calibrate", "tiny", "-o", "out", "--parallel", "1,x")

    assert status == 2
    assert "expected numbers with commas" in err
    assert not (tmp_path / "out").exists()
