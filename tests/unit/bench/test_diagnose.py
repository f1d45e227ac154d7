"""The usual suspects: a planted fault in one of them is named, and nothing else is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eaglebench.bench import measure
from eaglebench.records.knobs import EngineKnobs
from tests.fakes import Plant, ScriptedBackend, ScriptedRuntime
from tests.stored_runs import invoke, scripted, write_questions

BASE = ("diagnose", "tiny", "-o", "out", "--question-file", "questions.jsonl")
LITTLE = ("--max-new-tokens", "24", "--progress", "none")


class FaultyWhere(ScriptedRuntime):
    """Drafts wrongly where a knob has a value, in whichever arm."""

    def __init__(self, knob: str, value: object) -> None:
        super().__init__()
        self.knob, self.value = knob, value

    def backend(self, knobs: EngineKnobs) -> ScriptedBackend:
        """A backend of the cell."""
        is_faulty = getattr(knobs, self.knob) == self.value
        return ScriptedBackend(knobs, [(Plant(word="keeps"), is_faulty)])


@pytest.fixture
def patch(tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """A folder with questions, and a sound runtime."""
    write_questions(tmp_path / "questions.jsonl")
    with scripted(tmp_path) as patch:
        patch.setattr(measure, "open_runtime", lambda _choice: ScriptedRuntime())
        yield patch


def diagnosed(*options: str) -> tuple[int, str, str]:
    """Status, output and errors, wide enough for every column."""
    return invoke(*BASE, *LITTLE, *options, env={"COLUMNS": "200"})


@pytest.mark.usefixtures("patch")
def test_a_sound_engine_has_no_suspect_at_fault() -> None:
    """The head alone is what is measured; ten questions are called few."""
    status, out, err = diagnosed()

    assert status == 0, err
    assert "at fault: prefix cache, page-size 16, chunked-prefill-size 64, parallel 4" in out
    assert "the head alone, without cache, chunks or batch" in out
    assert "questions say little about other prompts" in out


@pytest.mark.parametrize(
    ("knob", "value", "named"),
    [
        ("arm", "radix", "prefix cache"),
        ("page_size", 16, "page-size 16"),
        ("chunked_prefill_size", 64, "chunked-prefill-size 64"),
        ("parallel", 4, "parallel 4"),
    ],
)
def test_what_is_at_fault_is_named(
    patch: pytest.MonkeyPatch, knob: str, value: object, named: str
) -> None:
    """In every arm or in one, alone or with all: with what it costs and where to look."""
    patch.setattr(measure, "open_runtime", lambda _choice: FaultyWhere(knob, value))
    status, out, _ = diagnosed()
    lines = [line for line in out.splitlines() if line.startswith("at fault:")]

    assert status == 3
    assert lines[0].startswith(f"at fault: {named} (acceptance length -")
    assert "; eaglebench explain " in lines[0]
    if knob != "arm":
        blamed = {line.removeprefix("at fault: ").split(" (")[0] for line in lines}
        both = {named, "all of them"}
        assert blamed == both | {f"{name}, cache" for name in both}


@pytest.mark.usefixtures("patch")
@pytest.mark.parametrize(("expect", "status"), [("1.05", 0), ("2.1", 0), ("9", 3)])
def test_an_expected_length_is_held_against_what_prompts_scatter(expect: str, status: int) -> None:
    """Above it, within it, and surely below it: then it is the head."""
    found, out, err = diagnosed("--expect", expect)

    assert found == status, err
    assert f"expected {float(expect):.2f}: measured" in out
    assert ("it is the head" in out) == (status == 3)


@pytest.mark.usefixtures("patch")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--page-size", "1,16"), "--page-size has 2 values"),
        (("--arms", "radix"), "--arms of `run` is settled"),
        (("--passes", "8"), "--passes of `run` is settled"),
        (("--page-size", "1"), "nothing would be tried"),
        (("--expect", "0.5"), "0.5"),
    ],
)
def test_what_it_settles_itself_is_refused(options: tuple[str, ...], words: str) -> None:
    """With status 2, before a model is loaded."""
    status, _, err = diagnosed(*options)

    assert status == 2
    assert words in err


@pytest.mark.usefixtures("patch")
def test_given_values_are_the_suspects() -> None:
    """Only these, and the cache; all of them together where there are several."""
    status, out, err = diagnosed("--page-size", "32", "--preallocation", "covered")

    assert status == 0, err
    assert "page-size 32" in out
    assert "preallocation covered" in out
    assert "parallel" not in out
    assert "all of them" in out
    one = diagnosed("--page-size", "32")[1]
    assert "all of them" not in one
