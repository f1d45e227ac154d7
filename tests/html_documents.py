"""Reports for tests of the HTML page: a scripted run, findings by hand, many cells, odd names."""

from dataclasses import replace
from pathlib import Path

from eaglebench.records.measured import MeasuredRun
from eaglebench.records.verdict import Finding, Judgement
from eaglebench.report.document import ReportDocument
from eaglebench.report.rows import make_rows
from eaglebench.stats.sweep import make_sweeps
from eaglebench.stats.tau import Tau
from eaglebench.store.decode import measured_run
from tests.fakes import NOISE, Plant, ScriptedRuntime
from tests.sessions import make_cell, make_folder, make_session, make_talk, make_talks

TAU = Tau(target=10 * NOISE, draft=10 * NOISE)
ARMS = ["radix", "unigram", "no-cache"]
PLANTS = {
    "radix": [Plant(word="close", gap=1e-5)],
    "unigram": [
        Plant(word="wrong draft", gap=1.0),
        Plant(word="wrong target", side="target", gap=1.0),
    ],
}
ODD = "</script><img src=x onerror=alert(1)>&\"'ü{{ 7 * 7 }}"


def make_run(root: Path, num_questions: int = 4) -> MeasuredRun:
    """A run of three arms in two cells, with a near-tie and two faults."""
    talks = [
        *make_talks(num_questions),
        make_talk("tie", "A close call."),
        make_talk("draft", "A wrong draft comes."),
        make_talk("target", "A wrong target comes."),
    ]
    folder = make_folder(root)
    cells = [make_cell(page_size=size) for size in (1, 16)]
    make_session(ScriptedRuntime(PLANTS), folder, talks, cells=cells, arms=ARMS).run()
    environment: dict[str, dict[str, object]] = {
        "exact": {"torch": "2.13.0", "num_threads": 1},
        "timing": {"cpu": "a processor"},
        "info": {"host": "somewhere"},
    }
    return replace(
        measured_run(folder), environment=environment, git={"sha": "abc123", "dirty": True}
    )


def make_judgement(*findings: Finding) -> Judgement:
    """A pass, a regression with an interval, and more."""
    passed = Finding(
        cell_id="cell", arm="radix", metric="al", verdict="PASS", reason="all turns identical"
    )
    worse = Finding(
        cell_id="cell",
        arm="unigram",
        metric="throughput",
        verdict="REGRESSED",
        reason="slower than allowed",
        change=-0.0312,
        half_width=0.0123,
        mde=0.0201,
        tier="matched",
        questions=("draft", "target"),
    )
    return Judgement(
        candidate="candidate",
        baseline="release-1",
        findings=(passed, worse, *findings),
        notes=("another machine",),
    )


def make_document(run: MeasuredRun, judgement: Judgement | None = None) -> ReportDocument:
    """A document with the rows of a run."""
    return ReportDocument(
        run=run,
        rows=tuple(make_rows(run.turns, run.blocks, TAU)),
        judgement=judgement or make_judgement(),
        notes=("radix never hit",),
    )


def make_swept(root: Path) -> ReportDocument:
    """A document over two chains and a tree."""
    shapes = [
        make_cell(num_steps=steps, eagle_topk=topk, num_draft_tokens=tokens)
        for steps, topk, tokens in ((1, 1, 2), (2, 1, 3), (2, 4, 9))
    ]
    folder = make_folder(root)
    make_session(ScriptedRuntime(), folder, make_talks(2), cells=shapes).run()
    run = measured_run(folder)
    return replace(make_document(run), sweeps=tuple(make_sweeps(run.turns, run.blocks)))


def many_cells(run: MeasuredRun, count: int) -> MeasuredRun:
    """The first cell's turns and blocks, again and again under other names."""
    first = run.turns[0].cell_id
    names = [f"page{n}-chunk{n % 3}-topk1" for n in range(count)]
    turns = [turn for turn in run.turns if turn.cell_id == first]
    blocks = [block for block in run.blocks if block.cell_id == first]
    return replace(
        run,
        turns=tuple(replace(turn, cell_id=name) for name in names for turn in turns),
        blocks=tuple(replace(block, cell_id=name) for name in names for block in blocks),
    )


def renamed(run: MeasuredRun, name: str) -> MeasuredRun:
    """Every cell and question with a name put in front."""
    return replace(
        run,
        run_id=name,
        suite={"name": name},
        config={name: name},
        models={"target_id": name, "dtype": name},
        environment={"exact": {name: name}, "timing": {}, "info": {}},
        turns=tuple(
            replace(t, cell_id=name + t.cell_id, question_id=name + t.question_id)
            for t in run.turns
        ),
        blocks=tuple(replace(b, cell_id=name + b.cell_id) for b in run.blocks),
    )
