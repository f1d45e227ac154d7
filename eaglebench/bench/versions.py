"""Two versions of the code, each run in processes of its own: a git commit, or an interpreter."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from eaglebench.errors import UsageError
from eaglebench.files import is_file, is_folder, user_path

_PACKAGE = "eaglebench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """How to start one version.

    Attributes:
        name: as the user gave it.
        python: the interpreter.
        source: folder that holds the package; None where the interpreter has it installed.
    """

    name: str
    python: Path
    source: Path | None

    def run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """One process of `eaglebench` with these arguments and environment, to its end.

        Raises:
            UsageError: it can't be started, or ends with an error; its last line is in the message.
        """
        mine = dict(environment)
        if self.source is not None:
            mine["PYTHONPATH"] = str(self.source)
        # -P: the code of the current folder must not come before the version's own
        command = [str(self.python), "-P", "-m", _PACKAGE, *arguments]
        try:
            done = subprocess.run(  # noqa: S603  # the user's own interpreter and commit
                command, env=mine, capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise UsageError(f"{self.name}: {self.python} can't be started: {error}") from error
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise UsageError(
                f"{self.name}: eaglebench ended with status {done.returncode}: {last}",
                hint=f"try: {' '.join(command)}",
            )


@contextmanager
def open_version(name: str, repository: Path) -> Iterator[Version]:
    """A version by name: an interpreter's path, or a commit that is checked out for the time.

    Raises:
        UsageError: it is neither.
    """
    path = user_path(name)
    if is_file(path) and os.access(path, os.X_OK):
        yield Version(name=name, python=path.absolute(), source=None)
        return
    if is_folder(path / _PACKAGE):
        yield Version(name=name, python=Path(sys.executable), source=path.absolute())
        return
    with TemporaryDirectory(prefix=f"{_PACKAGE}-ab-") as scratch:
        folder = Path(scratch) / "checkout"
        _git(name, repository, "worktree", "add", "--detach", str(folder), name)
        try:
            yield Version(name=name, python=Path(sys.executable), source=folder)
        finally:
            _git(name, repository, "worktree", "remove", "--force", str(folder))


def _git(name: str, repository: Path, *arguments: str) -> None:
    done = subprocess.run(  # noqa: S603  # fixed arguments and the user's own reference
        ["git", "-C", str(repository), *arguments],  # noqa: S607  # whichever git is on the path
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UsageError(
            f"{name!r} is no interpreter, no checkout and no commit of {repository}: {last}",
            hint="a git reference such as main or HEAD~1, a folder with a checkout, or the path of "
            "a python that has eaglebench",
        )
