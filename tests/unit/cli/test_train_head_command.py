"""`eaglebench train-head` as a user types it."""

import re
from pathlib import Path

import pytest

from eaglebench.cli.main import main
from tests.engines import TINY

SMALL = (
    *("--conversations", "16", "--user-tokens", "16", "--answer-tokens", "16", "--updates", "3"),
    *("--levels", "2", "--draft-vocab-size", "96", "--held-out-share", "0.3", "--batch", "8"),
    *("--dtype", "float32", "--num-threads", "1", "--exclude", "none", "--progress", "plain"),
)


def invoke(*arguments: str) -> int:
    """The exit status."""
    with pytest.raises(SystemExit) as ended:
        main(["train-head", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_head_is_made_and_its_figures_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Figures go to standard output, progress to standard error."""
    out = tmp_path / "head"
    status = invoke("--model", str(TINY), "--output", str(out), "--aux-layer-ids", "1,2,3", *SMALL)
    shown = capsys.readouterr()

    assert status == 0
    assert (out / "model.safetensors").is_file()
    assert shown.out.startswith(f"head: {out}\n")
    assert re.search(r"after:  acceptance length [1-3]\.\d{3}; by position", shown.out)
    assert shown.out.endswith(f"next: eaglebench run mtbench --model {TINY} --draft-model {out}\n")
    modes = [(out / name).stat().st_mode for name in ("config.json", "model.safetensors")]
    assert modes[0] == modes[1]
    assert "updates: 3/3" in shown.err


def test_what_is_wrong_is_said_before_any_compute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A usage error has status 2, says what was expected, and leaves no folder."""
    out = tmp_path / "head"
    too_shallow = invoke("--model", str(TINY), "--output", str(out), *SMALL)
    no_numbers = invoke("--model", str(TINY), "--output", str(out), "--aux-layer-ids", "x")
    negative = invoke("--model", str(TINY), "--output", str(out), "--updates", "0")
    shown = capsys.readouterr().err

    assert (too_shallow, no_numbers, negative) == (2, 2, 2)
    assert "--aux-layer-ids" in shown
    assert "--updates is 0; expected at least 1" in shown
    assert not out.exists()


def test_a_device_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the target is loaded, and without a folder left behind."""
    out = tmp_path / "head"
    status = invoke("--model", str(TINY), "--output", str(out), *SMALL, "--device", "abacus")

    assert status == 2
    assert "unknown device 'abacus'" in capsys.readouterr().err
    assert not out.exists()
