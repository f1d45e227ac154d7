"""Versions of the code: a commit, a checkout, an interpreter, or a clear refusal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eaglebench.bench.versions import open_version
from eaglebench.errors import UsageError


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of two commits, each of which writes its own number."""
    folder = tmp_path / "repository"
    package = folder / "eaglebench"
    package.mkdir(parents=True)
    git = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run((*git, "init", "-q", "-b", "main"), check=True)
    for number in (1, 2):
        (package / "__init__.py").write_text('"""Toy."""\n')
        (package / "__main__.py").write_text(
            f"import pathlib, sys\npathlib.Path(sys.argv[1]).write_text('{number}')\n"
            "if len(sys.argv) > 2:\n    sys.exit('it broke')\n"
        )
        subprocess.run((*git, "add", "-A"), check=True)
        subprocess.run((*git, "commit", "-q", "-m", str(number)), check=True)
    return folder


@pytest.mark.parametrize(("name", "number"), [("main", "2"), ("main~1", "1")])
def test_a_commit_runs_its_own_code(
    repository: Path, tmp_path: Path, name: str, number: str
) -> None:
    """From a checkout that is gone afterwards; the repository is left as it was."""
    with open_version(name, repository) as version:
        assert version.source is not None
        version.run([str(tmp_path / "out")], os.environ)
        source = version.source

    assert (tmp_path / "out").read_text() == number
    assert not source.exists()
    listed = subprocess.run(
        ("git", "-C", str(repository), "worktree", "list"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(listed.stdout.splitlines()) == 1


def test_a_folder_runs_as_it_stands(repository: Path, tmp_path: Path) -> None:
    """With whatever is not committed."""
    with open_version(str(repository), tmp_path) as version:
        version.run([str(tmp_path / "out")], os.environ)

    assert (tmp_path / "out").read_text() == "2"


def test_an_interpreter_is_taken_as_it_is(tmp_path: Path) -> None:
    """Another environment has its own eaglebench."""
    with open_version(sys.executable, tmp_path) as version:
        assert version.source is None
        assert version.python == Path(sys.executable)


def test_what_is_no_version_is_refused(repository: Path) -> None:
    """The message says what it could have been."""
    with (
        pytest.raises(UsageError, match="'nowhere' is no interpreter, no checkout and no commit"),
        open_version("nowhere", repository),
    ):
        pass


def test_a_version_that_fails_says_why(repository: Path, tmp_path: Path) -> None:
    """Its last line and how to try it."""
    with (
        open_version("main", repository) as version,
        pytest.raises(UsageError, match="main: eaglebench ended with status 1: it broke"),
    ):
        version.run([str(tmp_path / "out"), "x"], os.environ)
