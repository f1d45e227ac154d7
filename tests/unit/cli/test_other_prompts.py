"""The same ids with other prompts: gate and compare refuse, and name the questions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.assets.cache import packaged_root
from eaglebench.cli.main import main
from tests.fakes import ByteTokenizer, Plant, ScriptedRuntime

RUN = ("run", "tiny", "-o", "out", "--max-new-tokens", "12", "--progress", "none")
TEXTS = ("Name a river.", "Name a hill.", "Name a lake.")

pytestmark = pytest.mark.usefixtures("runtimes")


class EditedTemplate(ByteTokenizer):
    """A chat template with one more word."""

    def render_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The same behind `<system>`."""
        return self.encode("<system>") + super().render_chat(messages)


def invoke(*args: str) -> tuple[int, str]:
    """Exit status, and standard output in one line without borders of tables."""
    result = CliRunner().invoke(main, list(args))
    return result.exit_code, " ".join(result.stdout.replace("│", " ").split())


def run(*texts: str, file: str = "questions.jsonl", more: Sequence[str] = ()) -> None:
    """A stored run of these questions."""
    lines = [
        json.dumps({"question_id": f"q{number}", "turns": [text, "And another?"]})
        for number, text in enumerate(texts)
    ]
    Path(file).write_text("\n".join(lines))
    status, out = invoke(*RUN, "--question-file", file, *more)
    assert status == 0, out


def save() -> None:
    """A baseline of the last run."""
    assert invoke("baseline", "save", "tiny", "--reason", "first", "-o", "out")[0] == 0


def test_other_texts_under_the_same_ids() -> None:
    """Status 5 from both; the one question that was edited is named."""
    run(*TEXTS)
    save()
    run(TEXTS[0], "Name a mountain.", TEXTS[2])

    for command in (("gate", "-o", "out"), ("compare", "-o", "out")):
        status, out = invoke(*command)
        assert status == 5, out
        assert "NOT_COMPARABLE" in out
        assert "q1" in out
        assert "q0" not in out


def test_an_edited_chat_template(runtimes: list[ScriptedRuntime]) -> None:
    """Every question asks something else."""
    run(*TEXTS)
    save()
    edited = ScriptedRuntime()
    edited.tokenizer = EditedTemplate()
    runtimes.append(edited)
    run(*TEXTS)

    status, out = invoke("gate", "-o", "out")
    assert status == 5
    assert "3 of 3 questions ask something else" in out


def test_the_same_questions_from_another_file_pass() -> None:
    """Its path is no part of what was asked; its digest is in the records."""
    run(*TEXTS)
    save()
    run(*TEXTS, file="copy.jsonl")

    assert invoke("gate", "-o", "out")[0] == 0
    assert invoke("compare", "-o", "out")[0] == 0
    manifests = [json.loads(path.read_text()) for path in Path("out/runs").glob("*/run.json")]
    digests = {manifest["suite"]["questions_sha256"] for manifest in manifests}
    header = json.loads(Path("out/baselines/tiny.jsonl").read_text().splitlines()[0])
    assert digests == {header["questions_sha256"]}


def test_another_answer_is_a_regression_and_no_other_question(
    runtimes: list[ScriptedRuntime],
) -> None:
    """Second prompts hold the first answers; a target that answers otherwise is still judged."""
    run(*TEXTS)
    save()
    runtimes.append(ScriptedRuntime({"radix": [Plant(word="hill", side="target")]}))
    run(*TEXTS)

    status, out = invoke("gate", "-o", "out")
    assert status == 3
    assert "ask something else" not in out


def test_models_are_told_apart_by_their_files(runtimes: list[ScriptedRuntime]) -> None:
    """The same ones by path pass; others of the same name are not comparable."""
    run(*TEXTS)
    save()
    shipped = packaged_root()
    paths = ("--model", str(shipped / "tiny"), "--draft-model", str(shipped / "tiny-eagle3"))
    run(*TEXTS, more=paths)
    assert invoke("gate", "-o", "out")[0] == 0

    other = ScriptedRuntime()
    other.info = replace(other.info, draft_sha256="9" * 64)
    runtimes.append(other)
    run(*TEXTS)
    status, out = invoke("gate", "-o", "out")
    assert status == 5
    assert "other weights of --draft-model" in out


def test_an_option_that_a_baseline_does_not_know_was_left_alone_then() -> None:
    """So it has to be left alone now; one that changes nothing that is computed may be given."""
    run(*TEXTS)
    save()
    path = Path("out/baselines/tiny.jsonl")
    header, *cells = path.read_text().splitlines()
    known = json.loads(header)
    for name in ("ignore_eos", "accept_threshold_acc", "top_p"):
        del known["workload"][name]
    path.write_text("\n".join([json.dumps(known), *cells]) + "\n")

    run(*TEXTS, more=("--label", "a=b", "--warmup", "2"))
    assert invoke("gate", "-o", "out")[0] == 0
    run(*TEXTS, more=("--ignore-eos",))
    status, out = invoke("gate", "-o", "out")
    assert status == 5
    assert "ignore_eos: True here, False in" in out
