"""The real engine and the tiny pair, judged from the command line, in float64."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.cli.main import main

FAULTS = ("unigram", "kv-reuse", "seam-guess")
RUN = (
    *("run", "tiny", "--dtype", "float64", "--page-size", "1", "--chunked-prefill-size", "16"),
    *("--progress", "none", "-o"),
)


def invoke(*args: str) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    result = CliRunner().invoke(main, list(args))
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a baseline of the right engine and a run of the faulty ones."""
    folder = tmp_path_factory.mktemp("results")
    status, _, err = invoke(*RUN, str(folder))
    assert status == 0, err
    save = ("baseline", "save", "tiny", "--reason", "first", "--allow-dirty", "-o", str(folder))
    assert invoke(*save)[0] == 0
    arms = ",".join((*FAULTS, "no-cache"))
    status, _, err = invoke(*RUN, str(folder), "--arms", arms, "-e", "faulty")
    assert status == 0, err
    return folder


def faulty(root: Path) -> str:
    """The run of the faulty arms."""
    (found,) = (root / "runs").glob("*-faulty-*")
    return str(found)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen_inside_its_run_and_not_judged(root: Path, fault: str) -> None:
    """Against no-cache: turns part where the draft was sure; the verdict is on other arms."""
    document = json.loads(invoke("report", faulty(root), "--format", "json")[1])

    assert not [f for f in document["judgement"]["findings"] if f["arm"] == fault]
    (difference,) = [d for d in document["differences"] if d["arm"] == fault]
    assert difference["turns_by_class"]["draft-state"]
    shown = invoke("report", faulty(root), "--format", "md")[1].splitlines()
    assert any(fault in line and " seen " in line for line in shown)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_called_regressed_against_the_baseline(root: Path, fault: str) -> None:
    """With status 3, as if it were the cache arm."""
    status, out, _ = invoke("gate", faulty(root), "--as", f"{fault}=radix", "-o", str(root))

    assert status == 3
    assert "REGRESSED" in out


def test_the_right_engine_passes_on_every_machine(root: Path) -> None:
    """Counts of float64 do not depend on where they were made."""
    baseline = root / "baselines" / "tiny.jsonl"
    lines = baseline.read_text().splitlines()
    header = json.loads(lines[0])
    header["exact"] |= {"torch": "another", "arch": "another", "num_threads": 64}
    baseline.write_text("\n".join([json.dumps(header), *lines[1:]]) + "\n")
    invoke(*RUN, str(root))

    status, out, err = invoke("gate", "-o", str(root))

    assert status == 0, out + err


def test_lost_look_ahead_slots_are_seen_in_the_drafts(tmp_path: Path) -> None:
    """It costs no acceptance on these questions, so that every count passes; the drafts do not."""
    shape = ("--parallel", "4", "--num-steps", "5", "-n", "4")
    assert invoke(*RUN, str(tmp_path), *shape)[0] == 0
    save = ("baseline", "save", "look", "--reason", "first", "--allow-dirty", "-o", str(tmp_path))
    assert invoke(*save)[0] == 0
    assert invoke(*RUN, str(tmp_path), *shape, "--arms", "no-lookahead,no-cache")[0] == 0
    gate = ("gate", "--baseline", "look", "--as", "no-lookahead=radix", "-o", str(tmp_path))

    assert invoke(*gate, "--fail-on", "al:0", "--fail-on", "verify_steps:0")[0] == 0
    status, out, _ = invoke(*gate)
    assert status == 3
    assert " drafts" in out
