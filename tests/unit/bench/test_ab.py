"""Two versions in turns: the order of processes, when it stops, and what is judged."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import pytest

from eaglebench.bench.ab import ProcessPairs, compare_versions
from eaglebench.bench.stored_run import Run, list_runs
from eaglebench.bench.versions import Version
from eaglebench.plan.passes import PassRange
from tests.fake_clock import FakeClock
from tests.stored_runs import invoke, scripted, write_questions

ARGUMENTS = ("tiny", "--question-file", "questions.jsonl", "--max-new-tokens", "8")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with questions, where `run` needs no model."""
    write_questions(tmp_path / "questions.jsonl")
    with scripted(tmp_path):
        yield tmp_path


class Process(Version):
    """A version that runs in this process, with options of its own, and is written down."""

    def __init__(self, name: str, started: list[str], *options: str) -> None:
        super().__init__(name=name, python=Path(), source=None)
        object.__setattr__(self, "started", started)
        object.__setattr__(self, "options", options)

    def run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """One run, as the command line makes it."""
        self.started.append(self.name)  # type: ignore[attr-defined]
        status, _, err = invoke(*arguments, *self.options)  # type: ignore[attr-defined]
        assert status == 0, err
        assert environment == {"A": "1"}


def _pairs(text: str, precision: float) -> ProcessPairs:
    return ProcessPairs(number=PassRange.parse(text), precision=precision, allowed=0.02)


def _rate(run: Run, cell: str, arm: str) -> float:
    """Tokens a second of one run."""
    return next(
        row.tokens_per_s
        for row in run.document.rows
        if (row.cell_id, row.arm) == (cell, arm) and row.tokens_per_s
    )


def test_versions_take_turns_until_the_most_pairs(folder: Path) -> None:
    """A B, B A, A B: a width that can't be reached costs the most pairs."""
    started: list[str] = []
    told: list[str] = []
    rows, judgement = compare_versions(
        Process("old", started),
        Process("new", started),
        ARGUMENTS,
        folder / "ab",
        _pairs("2:3", 1e-12),
        environment={"A": "1"},
        notice=told.append,
        clock=FakeClock(tick_s=30.0),
    )

    assert started == ["old", "new", "new", "old", "old", "new"]
    assert [line.split(",")[0] for line in told] == [f"pair {i} of 2 to 3" for i in (1, 2, 3)]
    assert told[0].endswith("minutes or more to go")
    assert told[1:] == ["pair 2 of 2 to 3", "pair 3 of 2 to 3"]  # too few for a width, and enough
    for row in rows:
        runs = [list_runs(folder / "ab" / side) for side in "ab"]
        (cell, arm), told_rates = (row.cell_id, row.arm), row.rates
        means = [fmean(_rate(run, cell, arm) for run in side) for side in runs]
        assert told_rates == pytest.approx(means)
    assert (judgement.baseline, judgement.candidate) == ("A (old)", "B (new)")
    counted = {f.verdict for f in judgement.findings if f.metric == "al"}
    assert counted == {"PASS"}
    assert {f.metric for f in judgement.findings} == {"al", "throughput"}
    assert all(
        "3 pairs; with fewer than 8 nothing is claimed" in f.reason and f.half_width is None
        for f in judgement.findings
        if f.metric == "throughput"
    )
    assert any(str(folder / "ab") in note for note in judgement.notes)


def test_it_stops_once_the_ratio_is_known(folder: Path) -> None:
    """Not before the least number of pairs, and then as soon as the half-width is reached."""
    started: list[str] = []
    compare_versions(
        Process("old", started),
        Process("new", started),
        ARGUMENTS,
        folder / "ab",
        _pairs("2:9", 1e9),
        environment={"A": "1"},
        notice=lambda _line: None,
    )

    assert len(started) == 2 * 2


def test_other_work_of_b_is_not_compared(folder: Path) -> None:
    """The newest runs are held together as `compare` does it, and what differs is named."""
    _, judgement = compare_versions(
        Process("old", []),
        Process("new", [], "--max-new-tokens", "4"),
        ARGUMENTS,
        folder / "ab",
        _pairs("2", 0.01),
        environment={"A": "1"},
        notice=lambda _line: None,
    )

    assert judgement.verdict == "NOT_COMPARABLE"
    assert any("max_new_tokens" in f.reason for f in judgement.findings)
