"""The command line without a model, for tests that choose the runtime of each run."""

from pathlib import Path

import pytest

from eaglebench.bench import measure
from tests.fakes import ScriptedRuntime


@pytest.fixture
def runtimes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[ScriptedRuntime]:
    """Runtimes for the next runs, the last one first; fresh ones behind them."""
    waiting: list[ScriptedRuntime] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        measure, "open_runtime", lambda _: waiting.pop() if waiting else ScriptedRuntime()
    )
    monkeypatch.setattr(measure, "git_state", lambda _folder: {"sha": "1f2e3d4", "dirty": False})
    monkeypatch.setenv("COLUMNS", "200")
    return waiting
