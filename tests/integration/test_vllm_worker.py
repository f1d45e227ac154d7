"""An engine outside, played by a script: commands, arms, faults of the process, nothing left behind."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from eaglebench.backends import vllm, worker_process
from eaglebench.bench.stored_run import list_runs, open_run
from tests.stored_runs import invoke

SCRIPT = Path(__file__).parent.parent / "scripted_engine.py"
RUN = ("run", "tiny", "-o", "out", "-n", "3", "--max-new-tokens", "12")
PAGES = ("--page-size", "16")
OUTSIDE = ("--backend", "vllm", "--engine-python", sys.executable, "--progress", "none")


@pytest.fixture(autouse=True)
def _scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The script in place of the worker, in a folder of its own; no process outlives the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(vllm, "_SCRIPT", SCRIPT)
    yield
    left = [each for each in psutil.Process().children(recursive=True) if each.is_running()]
    assert [each for each in left if str(SCRIPT) in " ".join(each.cmdline())] == []


def run(*options: str, fault: str = "") -> tuple[int, str, str]:
    """A run on the scripted engine."""
    pages = () if "--page-size" in options else PAGES
    return invoke(*RUN, *pages, *OUTSIDE, *options, env={"FAULT": fault})


def test_a_run_is_measured_stored_and_judged_like_any_other() -> None:
    """Counts that it told are there, those that it did not are no zeros, and the gate takes it."""
    status, out, err = run("--arms", "radix,force-miss,no-cache")

    assert status == 0, err
    assert "radix = no-cache" in out
    rows = {row.arm: row for row in open_run("latest", "out").document.rows}
    assert rows["radix"].counts.cached_tokens
    assert rows["force-miss"].counts.cached_tokens == rows["no-cache"].counts.cached_tokens == 0
    assert rows["radix"].counts.accepted == rows["no-cache"].counts.accepted
    assert rows["radix"].counts.pages_allocated is None
    manifest = open_run("latest", "out").manifest
    assert manifest["models"]["engine"] == {"vllm": "0.32.0", "torch": "2.13.0"}
    assert manifest["config"]["backend"] == "vllm"
    save = ("baseline", "save", "v", "-o", "out", "--reason", "first", "--allow-dirty")
    assert invoke(*save)[0] == 0
    assert run("--arms", "radix,force-miss,no-cache")[0] == 0
    assert invoke("gate", "--baseline", "v", "-o", "out")[0] == 0


def test_two_engines_stand_side_by_side() -> None:
    """One command, two runs, one table; options of the engine outside are not for the one inside."""
    status, out, err = invoke(*RUN, *PAGES, "--backend", "embedded,vllm", *OUTSIDE[2:])

    assert status == 0, err
    assert [r.manifest["config"]["backend"] for r in list_runs("out")] == ["embedded", "vllm"]
    assert "2 runs side by side" in out
    names = [each.run_id for each in list_runs("out")]
    _, text, _ = invoke("compare", *names, "-o", "out", "--format", "json")
    document: dict[str, Any] = json.loads(text)
    assert {finding["metric"] for finding in document["findings"]} == {"al"}
    assert {finding["verdict"] for finding in document["findings"]} == {"REGRESSED"}
    assert "backend: vllm here" in " ".join(document["notes"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--arms", "unigram,no-cache"), "no arm unigram"),
        (("--page-size", "1"), "multiple of 16"),
        (("--eagle-topk", "4"), "drafts chains"),
        (("--preallocation", "covered"), "preallocation"),
        (("--temperature", "0.5"), "--temperature is not to be had of --backend vllm"),
        (("--engine-python", "/nowhere/python"), "can't be started"),
        (("--backend", "other"), "unknown backend 'other'"),
    ],
)
def test_what_it_has_not_is_refused_before_anything_runs(
    options: tuple[str, ...], said: str
) -> None:
    """By name; no run is begun."""
    status, _, err = run(*options)

    assert status == 2
    assert said in err
    assert not Path("out/runs").exists()


def test_a_cell_that_it_has_not_is_left_out_with_the_reason() -> None:
    """The others run."""
    status, _, err = run("--page-size", "1,16")

    assert status == 0, err
    manifest = open_run("latest", "out").manifest
    assert len(manifest["cells"]) == 1
    assert "multiple of 16" in manifest["skipped"][0]["reason"]


def test_an_engine_can_be_checked_without_a_run() -> None:
    """Who it is, what it accepted, what it found in its cache, what it does not tell; nothing is kept."""
    status, out, err = invoke(
        *("engines", "check", "--model", "tiny", *PAGES, *OUTSIDE), env={"FAULT": ""}
    )

    assert status == 0, err
    assert "vllm: vllm 0.32.0, torch 2.13.0" in out
    assert "check/1: prompt tokens" in out
    assert "cached 32" in out
    assert "accepted" in out
    assert "pages_allocated" in out.partition("not told: ")[2]
    assert not Path("out").exists()
    assert not Path("results").exists()
    _, listed, _ = invoke("engines", "list")
    assert "embedded: runs in this process" in listed
    assert "vllm: runs in a python of its own" in listed


def test_arms_that_a_suite_would_have_are_left_out_and_said() -> None:
    """The ladder's planted fault is nothing that vLLM has; those that were typed are refused."""
    shipped = Path(__file__).parents[2] / "suites" / "tiny.toml"
    arms = 'arms = ["unigram", "radix", "no-cache"]'
    Path("mine.toml").write_text(f"{shipped.read_text()}page_size = 16\n{arms}\n")
    status, _, err = invoke("run", "mine.toml", *RUN[2:], *OUTSIDE)

    assert status == 0, err
    assert "has no arm unigram; left out" in err
    assert open_run("latest", "out").manifest["config"]["arms"] == ["radix", "no-cache"]


def test_options_of_an_engine_outside_are_nothing_to_the_one_inside() -> None:
    """Refused by name."""
    status, _, err = invoke(*RUN, "--engine-arg", "gpu_memory_utilization=0.5")

    assert status == 2
    assert "--engine-arg is without effect" in err


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("die", "ended with status 7 in the middle of its work"),
        ("hang", "said nothing for 6 s"),
        ("babble", "expected JSON"),
        ("refuse", "no such block size"),
        ("miscount", "other accepted drafts"),
    ],
)
def test_a_fault_of_the_process_is_told_and_nothing_finished_is_lost(
    fault: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 5, the reason, what it wrote; `--resume` goes on where it stopped."""
    monkeypatch.setattr(vllm.VllmRuntime, "measure_noise", _no_noise)
    if fault == "hang":
        monkeypatch.setattr(worker_process.Worker.ask, "__defaults__", (6.0,))
    status, _, err = run("--arms", "radix", fault=fault)

    assert status == 5
    assert said in err
    assert fault != "die" or "out of memory" in err
    folder = open_run("latest", "out", is_strict=True).folder
    assert folder.manifest()["status"] == "failed"
    assert len(folder.turns()) == (2 if fault in {"die", "hang"} else 0)
    status, _, err = invoke("run", "-o", "out", "--resume", "latest", "--progress", "none")
    assert status == 0, err
    assert len(open_run("latest", "out").document.run.turns) == 6


def _no_noise(_self: object, _prompts: object) -> Any:
    from eaglebench.records.models import NumericNoise

    return NumericNoise(target=0.0, draft=0.0)
