"""A results folder made without a model: runs and a baseline whose names are hard to show."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.bench import measure
from eaglebench.cli.main import main
from tests.fakes import Plant, ScriptedRuntime

FAULT = {"unigram": [Plant(word="keeps")]}
ODD = "na\u00efve \u2192 \U0001f680 [/bold] :smile: <b>|"
"""Letters that ASCII, Latin-1 and cp1252 lack, and signs that mean something in some format."""
QUESTIONS = ("q1", ODD, "7")


@contextmanager
def scripted(folder: Path, *, sha: str = "1f2e3d4") -> Iterator[pytest.MonkeyPatch]:
    """The command line in a folder, with a runtime that needs no model.

    What a test changes meanwhile goes through the patch it is given: one that outlives this one
    would put back what stands here.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(measure, "open_runtime", lambda _choice: ScriptedRuntime(FAULT))
        patch.setattr(measure, "git_state", lambda _folder: {"sha": sha, "dirty": False})
        patch.delenv("GITHUB_STEP_SUMMARY", raising=False)
        yield patch


def invoke(
    *args: str, charset: str = "utf-8", env: Mapping[str, str | None] | None = None
) -> tuple[int, str, str]:
    """Exit status, standard output, standard error; an exception that got out is raised."""
    result = CliRunner(charset=charset).invoke(main, list(args), env=env)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def write_questions(path: Path) -> None:
    """A question file with odd ids; one of its questions meets the fault of the arm `unigram`."""
    rows = [
        {"question_id": name, "category": ODD, "turns": [f"Tell {name} what keeps it.", "And?"]}
        for name in QUESTIONS
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def make_results(folder: Path) -> None:
    """`out` with two runs and the baseline `odd`, which the second run does not reach."""
    write_questions(folder / "questions.jsonl")
    measured = ("run", "tiny", "-o", "out", "--question-file", "questions.jsonl")
    sizes = ("--max-new-tokens", "24", "--page-size", "1,16", "--progress", "none")
    common = (*measured, *sizes, "--label", f"note={ODD}")
    save = ("baseline", "save", "odd", "-o", "out", "--reason", f"because {ODD}")
    with scripted(folder):
        for args in (common, save, (*common, "--arms", "unigram,no-cache", "-e", ODD)):
            status, _, err = invoke(*args)
            assert status == 0, err
