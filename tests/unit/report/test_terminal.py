"""Tables, notes and paste lines, from a scripted run."""

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from math import inf, log
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from eaglebench.records.verdict import Judgement
from eaglebench.report.document import ReportDocument
from eaglebench.report.json_document import comparison_document
from eaglebench.report.notes import run_notes, sampling_notes
from eaglebench.report.phrases import paste_lines
from eaglebench.report.rows import Row, make_rows
from eaglebench.report.terminal import render_run
from eaglebench.stats.tau import Tau
from eaglebench.store.decode import measured_turns
from tests.fakes import NOISE, Plant, ScriptedRuntime
from tests.sessions import make_cell, make_folder, make_session, make_talk, make_talks

TAU = Tau(target=10 * NOISE, draft=10 * NOISE)
NO_RUN: Any = None
"""Only a table of fault arms looks at the run."""
EMPTY = ReportDocument(
    run=NO_RUN,
    rows=(),
    judgement=Judgement(candidate="a", baseline="b", findings=()),
    notes=(),
)


def make_run(root: Path, *plants: Plant, **options: object) -> list[Row]:
    """Rows of a toy run with plants in radix."""
    folder = make_folder(root)
    talks = [*make_talks(3), make_talk("odd", "Please do the odd thing.")]
    runtime = ScriptedRuntime({"radix": plants})
    make_session(runtime, folder, talks, **options).run()  # type: ignore[arg-type]
    return make_rows(measured_turns(folder), folder.blocks(), TAU)


def shown(rows: Sequence[Row], width: int, notes: Sequence[str] = ()) -> str:
    """What a console of this width prints when it is not a terminal."""
    stream = io.StringIO()
    document = replace(EMPTY, rows=tuple(rows), notes=tuple(notes))
    render_run(document, Console(file=stream, width=width), title="toy")
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 100, 140])
def test_table_keeps_its_last_column(tmp_path: Path, width: int) -> None:
    """No line is wider than the console, nothing is cut, and there are no control codes."""
    text = shown(make_run(tmp_path), width)
    table = text[: text.index("acceptance length")]

    assert "+0.00%" in table
    assert "no-cache" in table
    assert "…" not in table
    assert "\x1b" not in text
    assert all(len(line) <= width for line in table.splitlines())


def test_equal_arms_say_so(tmp_path: Path) -> None:
    """Seven of seven turns, no fault."""
    text = shown(make_run(tmp_path), 140)

    assert "7 of 7 turns identical, 0 near-ties" in text


def test_fault_is_named_with_question_and_gap(tmp_path: Path) -> None:
    """A planted wrong draft is a fault, not a near-tie."""
    rows = make_run(tmp_path, Plant(word="odd", gap=1.0))
    text = shown(rows, 140, run_notes(rows, [1], []))

    assert "draft-state: question odd turn 1" in text
    assert "1 turn parts from no-cache where the choice was clear: a fault" in text


def test_near_tie_is_listed(tmp_path: Path) -> None:
    """With its gap."""
    text = shown(make_run(tmp_path, Plant(word="odd", gap=1e-5)), 140)

    assert "1 near-ties" in text
    assert re.search(
        r"near-tie: question odd turn 1: draft at step \d+, position \d+, gap, swing 1e-05, 2e-05",
        text,
    )


def test_paste_lines_are_the_ones_people_know(tmp_path: Path) -> None:
    """The words and digits of SGLang's script, one line an arm."""
    lines = paste_lines(make_run(tmp_path))

    assert len(lines) == 2
    for line in lines:
        assert re.search(
            r"#questions: 4, Throughput: \d+\.\d\d token/s, Acceptance length: \d\.\d\d$", line
        )


def test_hint_when_nothing_was_shared(tmp_path: Path) -> None:
    """Page 64 can't hit on prompts this short; the note says what could."""
    rows = make_run(tmp_path, cells=[make_cell(page_size=64)], max_new_tokens=4)

    notes = run_notes(rows, [64], [])
    assert any("at least 65 tokens at page size 64" in note for note in notes)


def test_comparison_document_is_json(tmp_path: Path) -> None:
    """Classes sum to the turns; only what parted is listed."""
    rows = make_run(tmp_path, Plant(word="odd", gap=1.0))
    document = json.loads(json.dumps(comparison_document(rows, TAU), allow_nan=False))

    (entry,) = document["comparisons"]
    assert entry["close_choices"] == {"target": 0.0, "draft": 0.0}
    assert sum(entry["turns_by_class"].values()) == entry["turns"] == 7
    assert [pair["question_id"] for pair in entry["parted"]] == ["odd"]
    assert sum(entry["log_ratio"]) == pytest.approx(log(1 + entry["throughput_change"]))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"temperature": 0.7}, []),
        ({"temperature": 0.7, "accept_threshold_acc": 1.0}, []),
        ({"temperature": 0.7, "accept_threshold_acc": 0.9}, ["lossy", "accept_threshold_acc 0.9"]),
        ({"temperature": 0.0, "accept_threshold_single": 0.5}, ["ignored", "greedily"]),
        ({"temperature": 0.7, "accept_threshold_acc": 0.9, "algorithm": "NONE"}, []),
    ],
)
def test_thresholds_below_one_are_called_lossy(config: dict[str, object], words: list[str]) -> None:
    """Where they have an effect; where decoding is greedy, that they have none."""
    notes = sampling_notes(config)

    assert len(notes) == bool(words)
    assert all(word in note for word in words for note in notes)


def test_a_parting_without_logits_is_json_as_well(tmp_path: Path) -> None:
    """One arm drafted a token less, so there are no leads to compare: null, not infinity."""
    rows = make_run(tmp_path, Plant(word="odd", gap=1.0))
    (row, *_) = (r for r in rows if r.difference and any(p.parting for p in r.difference.pairs))
    assert row.difference is not None
    endless = tuple(
        replace(pair, parting=replace(pair.parting, gap=inf, swing=inf)) if pair.parting else pair
        for pair in row.difference.pairs
    )
    changed = replace(row, differences=(replace(row.difference, pairs=endless),))

    text = json.dumps(comparison_document([changed], TAU), allow_nan=False)

    (entry,) = json.loads(text)["comparisons"]
    partings = [pair["parting"] for pair in entry["parted"] if pair["parting"]]
    assert partings
    assert {(p["gap"], p["swing"]) for p in partings} == {(None, None)}
