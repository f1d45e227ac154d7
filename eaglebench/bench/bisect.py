"""The first commit whose counts are worse: halves the commits between a good and a bad one."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eaglebench.bench.compare import pair_runs
from eaglebench.bench.stored_run import Run
from eaglebench.bench.versions import open_version
from eaglebench.errors import NothingMeasuredError, UsageError
from eaglebench.plan.option import Notice
from eaglebench.records.verdict import Judgement
from eaglebench.store.run_folder import find_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A commit and the judgement on its run against the good one's."""

    commit: str
    subject: str
    judgement: Judgement

    @property
    def is_bad(self) -> bool:
        """Whether something is worse."""
        return self.judgement.verdict in {"REGRESSED", "FAILED"}


def first_bad(
    good: str,
    bad: str,
    arguments: Sequence[str],
    folder: Path,
    repository: Path,
    *,
    environment: Mapping[str, str],
    notice: Notice,
) -> Tried:
    """The first commit after `good` that is worse, up to `bad`.

    Each commit is run once with these arguments of `run`, in a process of its own, and held against
    the run of `good` question by question: counts are exact, so once is enough.

    Raises:
        UsageError: one of them is no commit, `good` is no ancestor, or a run ends with an error.
        NothingMeasuredError: `bad` is no worse than `good`, or one can't be compared with it.
    """
    commits = _between(good, bad, repository)

    def run_of(commit: str) -> Run:
        where = folder / commit[:12]
        with open_version(commit, repository) as version:
            options = (*arguments, "--progress", "none", "--output-dir", str(where))
            version.run(["run", *options], environment)
        return Run(find_run(where, "latest"))

    known = run_of(good)

    def tried(commit: str) -> Tried:
        _, judgement = pair_runs(known, run_of(commit), {}, across_environments=False)
        found = Tried(commit=commit, subject=_subject(commit, repository), judgement=judgement)
        if judgement.verdict == "NOT_COMPARABLE":
            reasons = [f.reason for f in judgement.findings if f.verdict == "NOT_COMPARABLE"]
            raise NothingMeasuredError(
                f"{commit[:12]} can't be compared with {good}: {reasons[0]}",
                hint="choose commits that do the same work under these options",
            )
        word = "worse" if found.is_bad else "as good"
        notice(f"{commit[:12]} {word} ({judgement.verdict}): {found.subject}")
        return found

    last = tried(commits[-1])
    if not last.is_bad:
        raise NothingMeasuredError(
            f"{bad} is no worse than {good}: {last.judgement.verdict}",
            hint="times are compared by eaglebench ab",
        )
    return halved(commits, tried, last)


def halved(commits: Sequence[str], tried: Callable[[str], Tried], last: Tried) -> Tried:
    """The first bad one of commits whose last is bad, taking all behind a bad one as bad."""
    low, high, found = 0, len(commits) - 1, last
    while low < high:
        middle = (low + high) // 2
        here = tried(commits[middle])
        if here.is_bad:
            high, found = middle, here
        else:
            low = middle + 1
    return found


def _between(good: str, bad: str, repository: Path) -> list[str]:
    """Commits behind `good` up to `bad`, the oldest first, along first parents."""
    _git(repository, "merge-base", "--is-ancestor", good, bad)
    text = _git(repository, "rev-list", "--reverse", "--first-parent", f"{good}..{bad}")
    commits = text.split()
    if not commits:
        raise UsageError(f"there is no commit between {good} and {bad}")
    return commits


def _subject(commit: str, repository: Path) -> str:
    return _git(repository, "log", "-1", "--format=%s", commit).strip()


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(  # noqa: S603  # fixed words and the user's own references
        ["git", "-C", str(repository), *arguments],  # noqa: S607  # whichever git is on the path
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it is no ancestor"])[-1]
        raise UsageError(
            f"git {arguments[0]} {arguments[-2]} {arguments[-1]}: {reason}",
            hint="expected two commits of this repository, the good one before the bad one",
        )
    return done.stdout
