"""The examples of `docs/python.md`, run as they stand."""

import re
from pathlib import Path
from typing import Any

import pytest

import eaglebench
from eaglebench.errors import UsageError
from tests.architecture.source import ROOT
from tests.stored_runs import invoke


@pytest.mark.filterwarnings("default")  # as in a notebook: other libraries may speak
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after another, as a reader would; the test of the last one is called with a baseline."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    for example in found:
        exec(example, names)  # it is ours
    status, _, err = invoke("baseline", "save", "main", "--reason", "r", "--allow-dirty")
    assert status == 0, err
    test = names["test_acceptance_is_no_worse"]
    assert callable(test)
    test()

    run = names["run"]
    assert isinstance(run, eaglebench.Run)
    assert len(found) == 3
    assert set(run.cells.arm) == {"radix", "no-cache"}
    assert len(run.turns) == 16
    assert int(run.turns.verify_steps.sum()) == len(run.steps)
    assert run.turns.sliding_window.isna().all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"page_sise": 16}, "did you mean page_size"),
        ({"block_size": 16}, "block_size is called page_size here"),
        ({"page_size": 0}, "--page-size 0"),
        ({"top_p": 0.5}, "--top-p is without effect"),
    ],
)
def test_options_are_refused_as_by_the_command(options: dict[str, Any], words: str) -> None:
    """Before anything is loaded, with the same words."""
    with pytest.raises(UsageError, match=words):
        eaglebench.run("tiny", **options)
