"""`run --resume` from the command line: what it refuses, and what it brings to an end."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.bench import measure
from eaglebench.cli.main import main
from eaglebench.records.knobs import EngineKnobs
from eaglebench.store.run_folder import RunFolder, find_run
from eaglebench.store.run_lock import writing
from tests.fakes import ScriptedBackend, ScriptedRuntime

TINY = ("run", "tiny", "-o", "out", "-n", "3", "--max-new-tokens", "12", "--progress", "none")
RESUME = ("run", "--resume", "latest", "-o", "out", "--progress", "none")

pytestmark = pytest.mark.usefixtures("runtimes")


class _Interrupted(ScriptedRuntime):
    """A runtime whose user presses Ctrl-C at the third question."""

    def backend(self, knobs: EngineKnobs) -> ScriptedBackend:
        """A backend that stops there."""

        class Stopping(ScriptedBackend):
            def _observe(self, row: object) -> object:  # type: ignore[override]
                if row.request.request_id.startswith("3/"):  # type: ignore[attr-defined]
                    raise KeyboardInterrupt
                return super()._observe(row)  # type: ignore[arg-type]

        return Stopping(knobs, [])


def invoke(*args: str) -> tuple[int, str, str]:
    """Exit status, standard output, standard error in one line."""
    result = CliRunner().invoke(main, list(args))
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


def interrupted(runtimes: list[ScriptedRuntime]) -> RunFolder:
    """A run that was stopped in its last question."""
    runtimes.append(_Interrupted())
    assert invoke(*TINY)[0] == 130
    return find_run(Path("out"), "latest")


def edit(path: Path, **changes: object) -> None:
    """Change fields of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_an_interrupted_run_is_brought_to_its_end(runtimes: list[ScriptedRuntime]) -> None:
    """With the counts of one that was not interrupted."""
    folder = interrupted(runtimes)
    assert folder.manifest()["status"] == "partial"

    assert invoke(*RESUME)[0] == 0
    counts = [row.split(",")[8:26] for row in (folder.path / "cells.csv").read_text().splitlines()]
    assert invoke(*TINY)[0] == 0
    whole = (find_run(Path("out"), "latest").path / "cells.csv").read_text().splitlines()
    assert counts == [row.split(",")[8:26] for row in whole]


def test_a_run_that_another_process_writes_is_refused(runtimes: list[ScriptedRuntime]) -> None:
    """Before a model is loaded, and reading it goes on as before."""
    folder = interrupted(runtimes)
    edit(folder.path / "run.json", status="running")

    with writing(folder.path):
        status, _, err = invoke(*RESUME)
        assert status == 2
        assert "is being written by process" in err
        assert "loading" not in err
        assert invoke("show", "-o", "out")[0] == 0
        assert "running" in invoke("list", "-o", "out")[1]
    assert "interrupted" in invoke("list", "-o", "out")[1]
    assert invoke(*RESUME)[0] == 0


def test_other_code_is_refused_by_name(
    runtimes: list[ScriptedRuntime], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever git says: half of the questions would be those of another drafter."""
    interrupted(runtimes)
    monkeypatch.setattr(measure, "code_sha256", lambda _package: "f" * 64)

    status, _, err = invoke(*RESUME)

    assert status == 2
    assert "can't be gone on with: eaglebench's code" in err


def test_another_head_is_refused_by_name(runtimes: list[ScriptedRuntime]) -> None:
    """And another dtype, device or library, as `obstacles` lists them."""
    interrupted(runtimes)
    other = ScriptedRuntime()
    other.info = replace(other.info, draft_sha256="f" * 64)
    runtimes.append(other)

    status, _, err = invoke(*RESUME)

    assert status == 2
    assert "draft_sha256: 111111111111... when it began, ffffffffffff... now" in err


@pytest.mark.parametrize(
    "option",
    [
        ("--num-steps", "3"),
        ("-n", "2"),
        ("--dtype", "float64"),
        ("--arms", "radix"),
        ("--profile",),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(
    runtimes: list[ScriptedRuntime], option: tuple[str, ...]
) -> None:
    """The run on disk has settled it."""
    interrupted(runtimes)

    status, _, err = invoke(*RESUME, *option)

    assert status == 2
    assert "is without effect: a run that is gone on with keeps its own options" in err
