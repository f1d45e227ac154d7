"""The first bad commit: found by halving, from commits to judgement, and what is refused."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from eaglebench.bench import bisect, measure
from eaglebench.bench.bisect import Tried, halved
from eaglebench.bench.versions import Version
from eaglebench.records.verdict import Finding, Judgement, Verdict
from tests.fakes import Plant, ScriptedRuntime
from tests.stored_runs import invoke, scripted, write_questions

SUBJECTS = ("first", "second", "third", "the fault", "fifth", "sixth")
FAULTY_FROM = SUBJECTS.index("the fault")


def git(folder: Path, *words: str) -> str:
    """What git says there."""
    user = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ("git", "-C", str(folder), *user, *words), check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def commits(tmp_path: Path) -> Iterator[list[str]]:
    """Six commits in a folder with questions; from the fourth on, radix drafts wrongly."""
    write_questions(tmp_path / "questions.jsonl")
    git(tmp_path, "init", "-q", "-b", "main")
    made = []
    for subject in SUBJECTS:
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", subject)
        made.append(git(tmp_path, "rev-parse", "HEAD"))

    with scripted(tmp_path) as patch:

        class Checkout(Version):
            """A commit that runs in this process."""

            def run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
                plants = [Plant(word="keeps")] if made.index(self.name) >= FAULTY_FROM else []
                runtime = ScriptedRuntime({"radix": plants})
                patch.setattr(measure, "open_runtime", lambda _choice: runtime)
                assert environment is not None
                assert invoke(*arguments)[0] == 0

        @contextmanager
        def open_version(name: str, _repository: Path) -> Iterator[Version]:
            whole = git(tmp_path, "rev-parse", name)
            yield Checkout(name=whole, python=Path(), source=None)

        patch.setattr(bisect, "open_version", open_version)
        yield made


def bisected(good: str, bad: str) -> tuple[int, str, str]:
    """The command on the questions."""
    options = ("--question-file", "questions.jsonl", "--max-new-tokens", "24", "-o", "out")
    return invoke("bisect", "--good", good, "--bad", bad, "tiny", *options)


def test_the_commit_that_made_it_worse_is_named(commits: list[str]) -> None:
    """With its subject and the questions, in three runs besides the good and the bad one."""
    status, out, err = bisected(commits[0], commits[-1])

    assert status == 0, err
    assert f"first worse: {commits[FAULTY_FROM][:12]} the fault" in out
    assert "REGRESSED" in out
    assert err.count(" worse (") + err.count(" as good (") <= 4


@pytest.mark.usefixtures("commits")
def test_what_can_not_be_halved_is_refused() -> None:
    """A bad one that is no worse, commits the wrong way round, and no commit."""
    same, wrong, none = bisected("main~5", "main~4"), bisected("main", "main~2"), bisected("x", "y")

    assert (same[0], "is no worse than" in same[2]) == (5, True)
    assert (wrong[0], "the good one before the bad one" in wrong[2]) == (2, True)
    assert none[0] == 2


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 33])
def test_every_place_is_found_in_few_tries(count: int) -> None:
    """No more tries than the number of commits can be halved."""
    commits = [f"c{number}" for number in range(count)]
    for first in range(count):
        asked: list[str] = []

        def tried(commit: str, first: int = first, asked: list[str] = asked) -> Tried:
            asked.append(commit)
            verdict: Verdict = "REGRESSED" if int(commit[1:]) >= first else "PASS"
            finding = Finding(cell_id="c", arm="a", metric="al", verdict=verdict, reason="")
            judgement = Judgement(candidate=commit, baseline="", findings=(finding,), notes=())
            return Tried(commit=commit, subject="", judgement=judgement)

        last = tried(commits[-1])
        asked.clear()
        assert halved(commits, tried, last).commit == commits[first]
        assert len(asked) <= count.bit_length()
