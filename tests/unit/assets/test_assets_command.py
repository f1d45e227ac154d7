"""The command group `eaglebench assets`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.assets.catalog import CATALOG
from eaglebench.cli.assets_command import assets
from eaglebench.errors import AssetError, UsageError


def test_list_tells_what_is_here(cache: Path) -> None:
    """Every asset is listed with where it lies and whether it has to be fetched."""
    done = CliRunner().invoke(assets, ["list", "--format", "json"], catch_exceptions=False)

    facts = {fact["name"]: fact for fact in json.loads(done.output)}
    assert list(facts) == list(CATALOG)
    assert facts["smollm2-135m"]["state"] == "to fetch"
    assert facts["smollm2-135m"]["path"] == str(cache / "smollm2-135m")
    assert facts["smollm2-135m-eagle3"]["state"] == "packaged"


def test_list_is_a_table_by_default() -> None:
    """The table names every asset."""
    done = CliRunner().invoke(assets, ["list"], catch_exceptions=False)

    assert all(name in done.output for name in CATALOG)


def test_path_of_what_is_not_here_says_how_to_fetch_it() -> None:
    """`path` prints only a path that exists."""
    with pytest.raises(AssetError, match="mtbench-questions is not here") as caught:
        CliRunner().invoke(assets, ["path", "mtbench-questions"], catch_exceptions=False)

    assert caught.value.hint == "run: eaglebench assets fetch mtbench-questions"


def test_path_is_one_line() -> None:
    """`path` prints the path and nothing else."""
    done = CliRunner().invoke(assets, ["path", "smollm2-135m-eagle3"], catch_exceptions=False)

    assert Path(done.output.strip()).is_dir()


def test_verify_fails_after_telling_all(cache: Path) -> None:
    """Assets that are not as they should be are all named before the command fails."""
    cache.mkdir()
    (cache / "mtbench-questions.jsonl").write_text("changed")

    done = CliRunner().invoke(assets, ["verify"])

    assert isinstance(done.exception, AssetError)
    assert "mtbench-questions" in done.exception.message
    assert "smollm2-135m-eagle3: ships with the package" in done.output


def test_one_file_is_one_asset(tmp_path: Path) -> None:
    """`--from` with two names is refused."""
    path = tmp_path / "file"
    path.write_text("")
    names = ["smollm2-135m", "mtbench-questions"]

    with pytest.raises(UsageError, match="holds one asset"):
        CliRunner().invoke(assets, ["fetch", *names, "--from", str(path)], catch_exceptions=False)
