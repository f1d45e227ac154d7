"""A result that can't be trusted: a line in the tables, a status, and no way into a baseline."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.cli.main import main
from eaglebench.files import write_text
from eaglebench.records.knobs import EngineKnobs
from eaglebench.report.formats import FORMATS
from tests.fakes import Plant, ScriptedBackend, ScriptedRuntime

RUN = ("run", "tiny", "-o", "out", "--progress", "none", "--question-file", "questions.jsonl")
GO_ON = "--continue-on-error"
TEXTS = (*(f"Name river {number}." for number in range(9)), "Name a hill.")
TOO_SMALL = ("--max-total-tokens", "20", "--context-length", "20", GO_ON)
EVERY_ARM = ("radix", "no-cache")


@pytest.fixture(autouse=True)
def questions(tmp_path: Path, runtimes: list[ScriptedRuntime]) -> None:
    """Ten questions in the folder of the run."""
    assert runtimes == []
    lines = [
        json.dumps({"question_id": f"q{number}", "turns": [text]})
        for number, text in enumerate(TEXTS)
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines))


def invoke(*args: str) -> tuple[int, str, str]:
    """Exit status, standard output and error, each in one line without borders of tables."""
    result = CliRunner().invoke(main, list(args))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    out, err = (" ".join(text.replace("│", " ").split()) for text in (result.stdout, result.stderr))
    return result.exit_code, out, err


def planted(side: str, word: str = "hill", arms: Sequence[str] = EVERY_ARM) -> ScriptedRuntime:
    """A runtime whose answers about `word` end so, after six tokens."""
    return ScriptedRuntime({arm: [Plant(word=word, side=side)] for arm in arms})


def save(*more: str) -> tuple[int, str, str]:
    """A baseline of the last run."""
    return invoke("baseline", "save", "tiny", "--reason", "first", "-o", "out", *more)


@pytest.mark.parametrize("arms", ["radix,no-cache", "radix", "no-cache"])
def test_a_run_in_which_everything_failed_is_five_everywhere(arms: str) -> None:
    """Nothing to divide by, in any number of arms: no command breaks, none says it was measured."""
    status, out, err = invoke(*RUN, *TOO_SMALL, "--arms", arms)
    assert status == 5, err
    assert "10 of 10 turns failed: the prompt does not fit the pool" in out
    assert (
        "#questions: 0 of 10 (10 turns failed), Throughput: - token/s, Acceptance length: -" in out
    )

    known = set(Path("out/runs").iterdir())
    invoke(*RUN, "--max-new-tokens", "12")
    invoke("baseline", "save", "good", "--reason", "good", "-o", "out")
    known |= set(Path("out/runs").iterdir())
    invoke(*RUN, *TOO_SMALL, "--arms", arms)
    failed = str((set(Path("out/runs").iterdir()) - known).pop())
    commands = [
        ("show", failed),
        ("compare", failed, failed),
        ("explain", failed, "-", "q0"),
        ("gate", "--baseline", "good"),  # the newest run, whatever came of it
        *(("report", failed, "--format", form) for form in FORMATS),
    ]
    for command in commands:
        status, out, err = invoke(*command, "-o", "out")
        assert status in ({5, 3} if command[0] == "compare" else {5}), (command, out, err)
    assert invoke("list", "-o", "out")[0] == 0


def test_failed_turns_are_no_answers(runtimes: list[ScriptedRuntime]) -> None:
    """One of ten fails in both arms: nine questions, nine outputs that are the same, status 5."""
    runtimes.append(planted("failed"))

    status, out, err = invoke(*RUN, GO_ON)

    assert status == 5
    assert "1 of 10 turns failed: the target gave NaN (questions q9)" in out
    assert "9 of 10 turns identical, 0 near-ties, 9 same output, 1 failed" in out
    assert out.count("#questions: 9 of 10 (1 turn failed),") == 2
    assert "not to be trusted" in err
    (manifest,) = (json.loads(p.read_text()) for p in Path("out/runs").glob("*/run.json"))
    assert len(manifest["doubts"]) == 2


@pytest.mark.parametrize(
    ("side", "words"),
    [
        ("failed", "1 of 10 turns failed: the target gave NaN"),
        ("capacity", "1 of 10 answers were cut short by a full KV pool"),
    ],
)
def test_what_went_wrong_gets_into_no_baseline_unless_allowed(
    runtimes: list[ScriptedRuntime], side: str, words: str
) -> None:
    """Refused with the reason; once allowed, the same again passes, and more of it does not."""
    runtimes += [planted(side, "Name"), planted(side), planted(side)]
    assert invoke(*RUN, GO_ON)[0] == 5

    status, _, err = save()
    assert status == 2
    assert words in err
    assert "--allow-untrusted" in err
    status, _, err = save("--allow-untrusted")
    assert status == 0
    assert words in err

    assert invoke(*RUN, GO_ON)[0] == 5
    assert invoke("gate", "-o", "out")[0] == 0
    assert invoke(*RUN, GO_ON)[0] == 5
    assert invoke("gate", "-o", "out")[0] in {3, 5}


@pytest.mark.parametrize("side", ["failed", "capacity"])
def test_gate_and_compare_don_t_pass_what_went_wrong(
    runtimes: list[ScriptedRuntime], side: str
) -> None:
    """A good baseline, then a run in which one answer breaks off: status 3, with the reason."""
    runtimes += [planted(side), ScriptedRuntime()]
    invoke(*RUN, GO_ON)
    assert save()[0] == 0
    invoke(*RUN, GO_ON)

    for command in ("gate", "compare"):
        status, out, _ = invoke(command, "-o", "out")
        assert status == 3, out
        assert "FAILED" in out
        assert "q9" in out


def test_an_unfinished_run_is_not_compared() -> None:
    """Whichever of the two it is."""
    for _ in range(2):
        assert invoke(*RUN, "--max-new-tokens", "12")[0] == 0
    first, last = sorted(Path("out/runs").glob("*/run.json"))
    for path in (first, last):
        kept = path.read_text()
        path.write_text(json.dumps(json.loads(kept) | {"status": "partial"}))
        status, out, _ = invoke("compare", first.parent.name, last.parent.name, "-o", "out")
        assert status == 5, out
        assert "this run is partial" in out
        path.write_text(kept)
    assert invoke("compare", first.parent.name, last.parent.name, "-o", "out")[0] == 0


def test_a_drafter_that_hardly_drafts_is_remarked_on(runtimes: list[ScriptedRuntime]) -> None:
    """By the run and where a baseline is made of it; it stays a result."""
    runtimes.append(ScriptedRuntime({arm: [Plant(word="Name", side="idle")] for arm in EVERY_ARM}))

    status, out, _ = invoke(*RUN, GO_ON)
    assert status == 0
    assert "the drafter accepts next to nothing" in out
    status, _, err = save()
    assert status == 0
    assert "the drafter accepts next to nothing" in err


class _Remembering(ScriptedRuntime):
    """A runtime whose caches can't be emptied."""

    def backend(self, knobs: EngineKnobs) -> ScriptedBackend:
        """A backend whose `reset` does nothing."""

        class Remembering(ScriptedBackend):
            def reset(self) -> None:
                self.num_resets += 1

        return Remembering(knobs, [])


def test_a_reset_that_does_nothing_is_no_measurement(runtimes: list[ScriptedRuntime]) -> None:
    """Later passes find what the first one left, which their cached tokens tell."""
    runtimes.append(_Remembering())

    status, out, _ = invoke(*RUN, "--max-new-tokens", "12", "--passes", "3")

    assert status == 5
    assert "radix: passes did not start from empty caches" in out
    assert "no-cache: passes" not in out
    assert invoke(*RUN, "--max-new-tokens", "12", "--passes", "3")[0] == 0


def test_two_runs_may_end_at_once(tmp_path: Path) -> None:
    """Both write the index; what one of them has half written is not the other's."""
    (tmp_path / "index.jsonl.tmp").mkdir()
    path = tmp_path / "index.jsonl"

    write_text(path, "{}\n")

    assert path.read_text() == "{}\n"
