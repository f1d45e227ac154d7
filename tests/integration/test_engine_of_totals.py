"""An engine that tells tokens and totals, or tokens alone: every command works, and nothing is 0."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eaglebench.bench import measure
from eaglebench.records.counters import Counters
from eaglebench.records.generation import GenerationRequest
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.observation import RequestObservation
from tests.fakes import ScriptedBackend, ScriptedRuntime
from tests.stored_runs import invoke, scripted, write_questions

RUN = ("run", "tiny", "-o", "out", "--question-file", "questions.jsonl", "--max-new-tokens", "16")
TOKENS = ("turns", "prompt_tokens", "output_tokens")
TOTALS = (
    *TOKENS,
    *("prefill_sampled", "verify_steps", "num_drafts", "drafted", "accepted", "bonus", "overrun"),
)


class TellingLess(ScriptedBackend):
    """Tells only some counters, and no step."""

    told: tuple[str, ...] = TOTALS

    def generate(
        self,
        requests: Iterable[GenerationRequest | None],
        replay: Mapping[str, Sequence[int]] | None = None,
    ) -> Iterator[RequestObservation]:
        """The same answers without what is not told."""
        for seen in super().generate(requests, replay):
            counters = Counters(**{name: getattr(seen.counters, name) for name in self.told})
            yield replace(seen, counters=counters, steps=(), accepted_per_step=None)


class OfTotals(ScriptedRuntime):
    """A runtime whose engine tells less."""

    def __init__(self, told: tuple[str, ...]) -> None:
        super().__init__()
        self.told = told

    def backend(self, knobs: EngineKnobs) -> ScriptedBackend:
        """A backend that tells that much."""
        made = TellingLess(knobs, [])
        made.told = self.told
        return made


@pytest.fixture(params=[TOTALS, TOKENS], ids=["totals", "tokens"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, bool]]:
    """A folder with two such runs, and whether they know acceptance."""
    write_questions(tmp_path / "questions.jsonl")
    with scripted(tmp_path) as patch:
        patch.setattr(measure, "open_runtime", lambda _choice: OfTotals(request.param))
        for _ in range(2):
            status, _, err = invoke(*RUN, "--progress", "none")
            assert status == 0, err
        yield tmp_path / "out", request.param is TOTALS


def test_tables_show_what_was_told(stored: tuple[Path, bool]) -> None:
    """The length where totals are known, a dash where they are not, and never 0.00."""
    _, has_totals = stored
    status, out, err = invoke("show", "-o", "out", env={"COLUMNS": "160"})
    _, told, _ = invoke("show", "-o", "out", "--format", "json")
    cells = json.loads(told)["cells"]

    assert status == 0, err
    assert "0.00" not in out.replace("0.00%", ""), out
    for cell in cells:
        assert (cell["acceptance_length"] is not None) == has_totals
        assert cell["cached_tokens"] is None


@pytest.mark.parametrize("form", ["html", "md", "pr", "junit", "json", "csv", "bencher"])
@pytest.mark.usefixtures("stored")
def test_every_format_takes_it(form: str) -> None:
    """No number is made up and no format falls over."""
    status, _, err = invoke("report", "-o", "out", "--format", form, "--to", f"report.{form}")

    assert status == 0, err


@pytest.mark.usefixtures("stored")
def test_commands_compare_what_there_is() -> None:
    """Two such runs are compared and gated on what both have."""
    status, out, err = invoke("compare", "latest~1", "latest", "-o", "out")
    assert status in {0, 5}, err
    assert "REGRESSED" not in out
    status, out, err = invoke("explain", "latest", "-", "q1", "-o", "out")
    assert status == 0, err


def test_a_baseline_needs_something_to_judge(stored: tuple[Path, bool]) -> None:
    """Totals make one that its own run passes; tokens alone are refused, with the reason."""
    _, has_totals = stored
    status, _, err = invoke("baseline", "save", "less", "-o", "out", "--reason", "first")
    if not has_totals:
        assert (status, "were not measured" in err) == (2, True), err
        return
    assert status == 0, err
    judged: Any = invoke("gate", "--baseline", "less", "-o", "out")
    assert judged[0] == 0, judged
