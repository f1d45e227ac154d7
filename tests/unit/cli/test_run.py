"""`run` from the command line to the table, on a runtime without a model."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.bench import measure
from eaglebench.cli.main import main
from tests.fakes import Plant, ScriptedRuntime

TINY = ("run", "tiny", "-o", "out", "-n", "3", "--max-new-tokens", "12", "--progress", "none")


@pytest.fixture(autouse=True)
def _scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is loaded, and runs land in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "open_runtime", lambda _choice: ScriptedRuntime())


def invoke(*args: str) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    result = CliRunner().invoke(main, list(args))
    return result.exit_code, result.stdout, result.stderr


def test_run_prints_a_table_and_lines_to_paste() -> None:
    """Plain text without control codes; one line an arm in the words people paste."""
    status, out, err = invoke(*TINY)

    assert status == 0, err
    assert "\x1b" not in out
    pasted = [line for line in out.splitlines() if "#questions: 3, Throughput: " in line]
    assert len(pasted) == 2
    assert "results: " in err


def test_json_is_all_that_goes_to_standard_output() -> None:
    """`--format json` can be parsed as it stands."""
    _, out, _ = invoke(*TINY, "--format", "json", "--label", "why=test")

    document = json.loads(out)
    assert document["run"]["status"] == "done"
    assert document["run"]["config"]["labels"] == {"why": "test"}
    assert {cell["arm"] for cell in document["cells"]} == {"radix", "no-cache"}


def test_run_can_be_shown_listed_and_replayed() -> None:
    """A stored run is found by `latest`, and its tokens can be replayed."""
    invoke(*TINY)

    assert "#questions: 3" in invoke("show", "-o", "out")[1]
    assert "tiny" in invoke("list", "-o", "out")[1]
    status, out, err = invoke(*TINY, "--replay", "latest")
    assert status == 0, err
    assert "#questions: 3" in out


def test_resume_refuses_other_options() -> None:
    """A finished run resumes to the same table; other options are named and refused."""
    invoke(*TINY)

    status, out, _ = invoke("run", "--resume", "latest", "-o", "out", "--progress", "none")
    assert status == 0
    assert "#questions: 3" in out
    status, _, err = invoke(*TINY, "--seed", "7", "--resume")
    assert status == 2
    assert "other options: --seed" in err


def test_unknown_run_is_a_usage_error() -> None:
    """Nothing to show, resume or replay is said plainly."""
    for args in (("show", "none"), (*TINY, "--replay", "none"), ("run", "--resume", "none")):
        status, _, err = invoke(*args)

        assert status == 2
        assert "no run 'none'" in err


def test_interrupt_keeps_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 130, with the folder and the way to go on; resuming completes the run."""

    class Interrupted(ScriptedRuntime):
        def measure_noise(self, prompts: object) -> object:  # type: ignore[override]
            raise KeyboardInterrupt

    monkeypatch.setattr(measure, "open_runtime", lambda _choice: Interrupted())
    status, _, err = invoke(*TINY)
    assert status == 130
    assert "eaglebench run --resume" in err

    monkeypatch.setattr(measure, "open_runtime", lambda _choice: ScriptedRuntime())
    status, out, err = invoke("run", "--resume", "-o", "out", "--progress", "none")
    assert status == 0, err
    assert "#questions: 3" in out


def test_a_model_that_gives_nan_stops_the_run_and_can_be_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Status 5, not a result; what is on disk is read again by the next command."""
    broken = ScriptedRuntime(plants={"radix": [Plant(word="", side="failed")]})
    monkeypatch.setattr(measure, "open_runtime", lambda _choice: broken)

    status, _, err = invoke(*TINY)

    assert status == 5, err
    assert "the target gave NaN" in err
    assert "--continue-on-error" in err
    _, out, err = invoke("show", "latest", "-o", "out")
    assert "failed: the target gave NaN" in " ".join(out.split()), err
