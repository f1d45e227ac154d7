"""`report --baseline`: the numbers beside the verdict are those that it was made of."""

import json
import re
from pathlib import Path

import pytest

from eaglebench.bench import measure
from eaglebench.records.knobs import EngineKnobs
from eaglebench.report.formats import FORMATS
from tests.fakes import Plant, ScriptedBackend, ScriptedRuntime
from tests.stored_runs import invoke, scripted, write_questions

RUN = (
    *("run", "tiny", "-o", "out", "--question-file", "questions.jsonl", "--max-new-tokens", "24"),
    *("--progress", "none"),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A baseline, and a run whose every arm drafts worse in one question."""
    folder = tmp_path_factory.mktemp("results")
    write_questions(folder / "questions.jsonl")
    with scripted(folder) as patch:
        assert invoke(*RUN)[0] == 0
        assert invoke("baseline", "save", "tiny", "-o", "out", "--reason", "first")[0] == 0
        patch.setattr(measure, "open_runtime", lambda _choice: WorseRuntime())
        assert invoke(*RUN)[0] == 0
    return folder


class WorseRuntime(ScriptedRuntime):
    """One plant in every arm, so that they agree with each other."""

    def backend(self, knobs: EngineKnobs) -> ScriptedBackend:
        """A backend that guesses wrong."""
        return ScriptedBackend(knobs, [(Plant(word="keeps"), True)])


def reported(root: Path, form: str) -> str:
    """The run against the baseline."""
    with scripted(root):
        args = ("report", "-o", "out", "--baseline", "tiny", "--format", form, "--to", "report")
        status, _, err = invoke(*args)
    assert status == 0, err
    return (root / "report").read_text()


def test_the_change_is_the_baselines(root: Path) -> None:
    """Both lengths, the change, and the questions that changed stand beside the verdict."""
    text = reported(root, "pr")
    (line,) = [each for each in text.splitlines() if re.match(r"\| \S+ +\| radix", each)]
    cells = [each.strip() for each in re.split(r"(?<!\\)\|", line)[1:-1]]

    assert float(cells[2]) > float(cells[3])
    assert cells[4] == f"{float(cells[4].rstrip('%')):+.2f}%"
    assert float(cells[4].rstrip("%")) < 0
    assert cells[5].startswith("3 of 3")
    assert cells[6] == "REGRESSED"
    assert "length against no-cache" not in text


@pytest.mark.parametrize("form", ["md", "html"])
def test_reports_hold_the_same_table(root: Path, form: str) -> None:
    """Under the baseline's name."""
    assert "Acceptance length against the baseline tiny" in reported(root, form)


def test_the_chart_draws_the_baselines_points(root: Path) -> None:
    """Not those of `no-cache`, in which no question differs."""
    found = re.search(
        r'<script type="application/json" id="chart-data">(.*?)</script>',
        reported(root, "html"),
        re.DOTALL,
    )
    assert found is not None
    data = json.loads(found[1])

    assert data["held"]
    (asked,) = data["asked"]
    mine, theirs = asked["y"][0], asked["b"][0]
    assert asked["y"][0] == asked["y"][1]
    assert mine[0::2] == theirs[0::2]
    assert any(steps > other for steps, other in zip(mine[1::2], theirs[1::2], strict=True))


def test_every_format_can_be_held_against_a_baseline(root: Path) -> None:
    """None of them fails for want of what was measured."""
    for form in FORMATS:
        assert reported(root, form)
