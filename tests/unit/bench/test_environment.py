"""The fingerprint: three classes, and digests that change with what matters."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eaglebench.bench.environment import fingerprint, git_state, machine_facts
from eaglebench.records.models import AcceleratorFacts
from tests.fakes import ScriptedRuntime


def test_facts_are_sorted_into_three_classes() -> None:
    """What decides integers, what decides times, what people want to know."""
    facts = machine_facts()

    assert set(facts) == {"exact", "timing", "info"}
    assert {"arch", "torch", "transformers"} <= set(facts["exact"])
    assert {"cpu", "cpus", "governor", "cpu_quota", "memory_bytes"} <= set(facts["timing"])
    assert {"eaglebench", "python", "host", "load_1m"} == set(facts["info"])


def test_a_digest_follows_its_class() -> None:
    """Another dtype or thread count changes the exact digest and leaves that of times alone."""
    info = ScriptedRuntime().info
    one = fingerprint(info, 1)

    assert fingerprint(info, 1)["digest"] == one["digest"]
    for other in (fingerprint(info, 2), fingerprint(replace(info, dtype="float64"), 1)):
        assert other["digest"]["exact"] != one["digest"]["exact"]
        assert other["digest"]["timing"] == one["digest"]["timing"]


def test_host_names_are_not_kept() -> None:
    """Only a digest of twelve characters."""
    assert len(machine_facts()["info"]["host"]) == 12


def test_git_state_knows_commit_and_changes(tmp_path: Path) -> None:
    """None outside a checkout; code is what is tracked, and what lies in the package."""
    assert git_state(tmp_path) is None
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run((*git, "init", "-q"), check=True)
    subprocess.run((*git, "commit", "-q", "--allow-empty", "-m", "x"), check=True)
    clean = git_state(tmp_path)
    package = tmp_path / "package"
    package.mkdir()
    (package / "code.py").write_text("x")
    subprocess.run((*git, "add", "-A"), check=True)
    subprocess.run((*git, "commit", "-q", "-m", "y"), check=True)
    (tmp_path / "junit.xml").write_text("x")
    beside = git_state(package)
    (package / "new.py").write_text("x")
    new = git_state(package)
    (package / "new.py").unlink()
    (package / "code.py").write_text("y")
    changed = git_state(package)

    assert clean is not None
    assert len(clean["sha"]) == 40
    found = [
        (state["dirty"], [Path(name).name for name in state["changed"]])
        for state in (clean, beside, new, changed)
        if state is not None
    ]
    assert found == [(False, []), (False, []), (True, ["new.py"]), (True, ["code.py"])]


@pytest.mark.parametrize(
    "name",
    [
        "target_sha256",
        "draft_sha256",
        "tokenizer_sha256",
        "target_config_sha256",
        "draft_config_sha256",
    ],
)
def test_every_digest_of_a_model_is_in_the_fingerprint(name: str) -> None:
    """Another target, head, tokenizer or config is another environment, and says so by name."""
    info = ScriptedRuntime().info
    changes: list[Any] = [{name: each * 64} for each in "ab"]
    one, other = (fingerprint(replace(info, **change), 1) for change in changes)

    assert one["exact"][name] == "a" * 64
    assert one["digest"]["exact"] != other["digest"]["exact"]


def test_threads_are_those_in_use() -> None:
    """One and two threads are two environments, also where nobody asked for a number."""
    info = ScriptedRuntime().info
    one, two = (fingerprint(replace(info, num_threads=count), None) for count in (1, 2))

    assert (one["exact"]["num_threads"], two["exact"]["num_threads"]) == (1, 2)
    assert one["digest"]["exact"] != two["digest"]["exact"]
    assert fingerprint(replace(info, num_threads=None), 3)["exact"]["num_threads"] == 3


@pytest.mark.parametrize(
    "change",
    [
        {"name": "NVIDIA A100-SXM4-80GB"},
        {"compute_capability": "8.0"},
        {"cuda": "12.6"},
        {"driver": "550.54.15"},
        {"memory_bytes": 80 << 30},
    ],
)
def test_a_gpu_is_told_apart_by_what_computes(change: dict[str, Any]) -> None:
    """Model, capability, CUDA and driver decide counts; `cuda:0` is a place."""
    gpu = AcceleratorFacts(
        name="NVIDIA H200",
        compute_capability="9.0",
        cuda="13.0",
        driver="580.65.06",
        memory_bytes=141 << 30,
    )
    info = replace(ScriptedRuntime().info, device="cuda:0", accelerator=gpu)
    one = fingerprint(info, 1)
    other = fingerprint(replace(info, accelerator=replace(gpu, **change)), 1)

    assert one["exact"]["device_name"] == "NVIDIA H200"
    assert one["digest"]["exact"] != other["digest"]["exact"]
