"""A fault of chunks that sits in every arm of the real engine: cells against cells tell."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.bench import documents
from eaglebench.cli.main import main
from eaglebench.engine.faults import SeamGuessFault
from eaglebench.engine.policy import EnginePolicy
from eaglebench.stats.cells import ACROSS_CELLS

CHUNKED = "page1-chunk16-topk1-steps2-draft3"
ARMS = ("force-miss", "no-cache")
"""Both compute every prompt whole, so their chunks end at the same tokens."""


def invoke(*args: str) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    result = CliRunner().invoke(main, list(args))
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of both chunk sizes by an engine that takes the guess at seams in every arm."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EnginePolicy, "wants_seam_guess", True)
        patch.setattr(EnginePolicy, "seam_successor", SeamGuessFault.seam_successor)
        status, _, err = invoke(
            *("run", "tiny", "--dtype", "float64", "--chunked-prefill-size", "-1,16"),
            *("--arms", ",".join(ARMS), "--progress", "none", "-o", str(folder)),
        )
    assert status == 0, err
    return folder


def save(root: Path, name: str) -> tuple[int, str, str]:
    """The run as a baseline."""
    about = ("--reason", "first", "--allow-dirty", "-o", str(root))
    return invoke("baseline", "save", name, *about)


def test_the_arms_agree_and_the_cells_do_not(root: Path) -> None:
    """The chunked cell is REGRESSED in both arms, and its questions are named."""
    document = json.loads(invoke("report", "-o", str(root), "--format", "json")[1])
    findings = document["judgement"]["findings"]

    inside = [f for f in findings if f["metric"] != ACROSS_CELLS]
    assert {f["verdict"] for f in inside} == {"PASS"}
    across = [f for f in findings if f["metric"] == ACROSS_CELLS]
    assert [(f["cell_id"], f["arm"]) for f in across] == [(CHUNKED, arm) for arm in ARMS]
    assert {f["verdict"] for f in across} == {"REGRESSED"}
    assert all(f["change"] < -0.01 and f["questions"] for f in across)
    assert [cell["axes"] for cell in document["cells"]] == [["chunked_prefill_size"]] * 2


def test_no_baseline_is_made_of_it(root: Path) -> None:
    """The refusal names the cell."""
    status, _, err = save(root, "refused")

    assert status == 2
    assert f"{CHUNKED} force-miss is REGRESSED" in err


def test_the_gate_is_red_though_the_baseline_has_the_same_fault(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every count is as in a baseline by somebody who compared no cells; status 3 all the same."""
    with monkeypatch.context() as patch:
        patch.setattr(documents, "judge_cells", lambda _found: [])
        assert save(root, "tiny")[0] == 0
    status, out, _ = invoke("gate", "--baseline", "tiny", "-o", str(root))

    assert status == 3
    assert ACROSS_CELLS in out
    assert "REGRESSED" in out


@pytest.mark.parametrize("form", ["html", "md", "pr", "csv", "junit"])
def test_every_format_tells(root: Path, tmp_path: Path, form: str) -> None:
    """The loss, and the cell that it is held against."""
    status, out, err = invoke(
        "report", "-o", str(root), "--format", form, "--to", str(tmp_path / "report")
    )

    assert status == 0, out + err
    text = (tmp_path / "report").read_text()
    assert "REGRESSED" in text or form == "junit"
    assert "across cells" in text or "Cells against" in text or form == "csv"
    assert "chunkoff" in text
