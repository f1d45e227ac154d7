"""An EAGLE-1 head from the command line to the record."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.cli.main import main
from tests.engines import tiny_models
from tests.linear_head import write_linear_head


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an EAGLE-1 head for the tiny target."""
    return write_linear_head(tmp_path_factory.mktemp("linear") / "head", tiny_models().target)


def run_tiny(head: Path, folder: Path, *args: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a small run."""
    small = ("-n", "2", "--max-new-tokens", "24", "--dtype", "float64", "--warmup", "0")
    quiet = ("-o", str(folder), "--progress", "none", "--format", "json")
    command = ["run", "tiny", "--draft-model", str(head), *small, *quiet, *args]
    result = CliRunner().invoke(main, command)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("args", [("--algorithm", "eagle"), ()])
def test_an_eagle1_head_is_measured(head: Path, tmp_path: Path, args: tuple[str, ...]) -> None:
    """Asked for by name or by its folder alone; the record says what it was."""
    status, out, err = run_tiny(head, tmp_path, *args)

    assert status == 0, err
    run = json.loads(out)["run"]
    (record,) = tmp_path.glob("runs/*/run.json")
    manifest = json.loads(record.read_text())
    assert run["config"]["algorithm"] == manifest["models"]["algorithm"] == "EAGLE"
    assert manifest["models"]["aux_layer_ids"] == [5]
    assert all(cell["accepted"] > 0 for cell in json.loads(out)["cells"])


def test_the_other_kind_is_refused(head: Path, tmp_path: Path) -> None:
    """Status 2, both kinds, and the flag that would do."""
    status, _, err = run_tiny(head, tmp_path, "--algorithm", "EAGLE3")

    assert status == 2
    assert "--algorithm EAGLE3 was asked for" in err
    assert "an EAGLE head" in err
    assert "try: use --algorithm EAGLE," in err
