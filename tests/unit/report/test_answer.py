"""The last lines of a run: the verdict, where to look, what a sweep found, what faults showed."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from eaglebench.bench.documents import with_findings
from eaglebench.gate.cells import judge_cells
from eaglebench.records.verdict import Judgement
from eaglebench.report.answer import MEASURED, NOTHING, answer_lines, headline
from eaglebench.report.document import ReportDocument
from eaglebench.report.matrix_table import matrix_table
from eaglebench.report.terminal import render_run
from eaglebench.stats.cells import compare_cells
from tests.fakes import Plant
from tests.sessions import make_cell
from tests.unit.report.toy_documents import TAU, make_document, with_sweeps

CHUNKS = (make_cell(), make_cell(chunked_prefill_size=8))
FAULTY = {"radix": [Plant(word="odd")]}


def shown(document: ReportDocument, width: int = 140) -> list[str]:
    """Lines of the terminal."""
    stream = io.StringIO()
    render_run(document, Console(file=stream, width=width), title="toy")
    return stream.getvalue().splitlines()


def with_cells(document: ReportDocument) -> ReportDocument:
    """The document with its cells held against each other."""
    found = compare_cells(document.run.turns, document.run.blocks, TAU)
    judgement = with_findings(document.judgement, judge_cells(found))
    return replace(document, cells=tuple(found), judgement=judgement)


def slowed(document: ReportDocument, cell_id: str, factor: float) -> ReportDocument:
    """As if one cell had taken so many times as long, and all others as long as it took."""
    blocks = tuple(
        replace(block, wall_s=factor if block.cell_id == cell_id else 1.0)
        for block in document.run.blocks
    )
    return replace(document, run=replace(document.run, blocks=blocks))


def without_findings(document: ReportDocument) -> ReportDocument:
    """As if nothing had been judged, by itself or in part."""
    judgement = Judgement(candidate="a", baseline="no-cache", findings=())
    return replace(document, judgement=judgement)


def test_equal_arms_are_the_answer(tmp_path: Path) -> None:
    """In how many cells, and how many cells draft alike; last on the screen."""
    document = with_cells(make_document(tmp_path, cells=CHUNKS))

    assert answer_lines(document) == [
        "radix = no-cache in 2 of 2 cells",
        "cells draft alike in 2 of 2 comparisons, arm by arm",
    ]
    assert shown(document)[-2:] == [f"PASS {answer_lines(document)[0]}", answer_lines(document)[1]]


def test_a_fault_names_its_questions_and_the_command_that_looks(tmp_path: Path) -> None:
    """The line is not broken, so that it can be typed again."""
    document = make_document(tmp_path, plants=FAULTY)
    cell = document.rows[0].cell_id

    last = shown(document, width=60)[-1]
    run = document.run.run_id
    assert last == (
        f"REGRESSED radix: questions odd; eaglebench explain {run} {cell} odd --arm radix"
    )


def test_a_cell_that_was_judged_worse_is_named_by_what_varies(tmp_path: Path) -> None:
    """Arms agree and cells do not: the other cell stands in the reason."""
    document = with_cells(make_document(tmp_path, cells=CHUNKS))
    worse = replace(
        document.judgement.findings[-1],
        verdict="REGRESSED",
        questions=("2", "6"),
        reason="2 of 7 turns part from the first cell",
    )
    found = (*document.judgement.findings[:-1], worse)
    document = replace(document, judgement=replace(document.judgement, findings=found))

    (first, *rest) = answer_lines(document)
    assert first.startswith("no-cache in chunk8: questions 2, 6; 2 of 7 turns part from")
    assert rest[0] == "radix = no-cache in 2 of 2 cells"


@pytest.mark.parametrize(
    ("factor", "words"),
    [(3, "; 3.000x over no speculation (1 pass)"), (0.5, "; no shape gains over no speculation")],
)
@pytest.mark.parametrize("arms", [["radix"], ["radix", "no-cache"]])
def test_the_answer_of_a_sweep_is_what_it_found(
    tmp_path: Path, arms: Sequence[str], factor: float, words: str
) -> None:
    """With one arm nothing is judged, and that is not called NOT_COMPARABLE."""
    shapes = ((0, 1, 1), (1, 1, 2), (2, 1, 3))
    cells = [make_cell(num_steps=s, eagle_topk=k, num_draft_tokens=d) for s, k, d in shapes]
    made = make_document(tmp_path, cells=cells, arms=arms)
    document = with_sweeps(slowed(made, cells[0].cell_id, factor))

    told = [line for line in answer_lines(document) if "fastest" in line]
    assert headline(document) == (MEASURED if len(arms) == 1 else "PASS")
    (answer,) = told
    assert words in answer


def test_one_arm_in_one_cell_compares_nothing(tmp_path: Path) -> None:
    """It is measured, and says why there is no verdict."""
    document = without_findings(make_document(tmp_path, arms=["radix"]))

    assert headline(document) == MEASURED
    assert answer_lines(document) == [NOTHING]


def test_planted_faults_have_a_line_of_their_own(tmp_path: Path) -> None:
    """Seen where they bit, not exercised where nothing reached them."""
    plants = {"unigram": [Plant(word="odd")]}
    arms = ["radix", "unigram", "seam-guess", "no-cache"]
    document = make_document(tmp_path, plants=plants, arms=arms, cells=CHUNKS)

    told = answer_lines(document)[-1]
    assert told == (
        "planted faults: unigram seen in 2; seam-guess not exercised in 1, not seen in 1"
    )


def test_the_matrix_stands_first_with_cells_named_by_what_varies(tmp_path: Path) -> None:
    """Cells down, arms across; what is no pass is written out."""
    plants = {"unigram": [Plant(word="odd")]}
    document = make_document(
        tmp_path, plants=plants, arms=["radix", "unigram", "no-cache"], cells=CHUNKS
    )
    table = matrix_table(document)

    assert table is not None
    assert [column.heading for column in table.columns] == ["cell", "radix", "unigram", "no-cache"]
    assert [row[0] for row in table.texts] == ["chunkoff", "chunk8"]
    assert all(row[1] == row[3] and row[2].endswith(" seen") for row in table.texts)
    assert shown(document)[0].startswith("Acceptance length")


def test_a_matrix_is_pasted_once_an_arm(tmp_path: Path) -> None:
    """Of the first cell, with the command for all of them."""
    document = make_document(tmp_path, cells=CHUNKS)
    lines = shown(document)

    assert sum("#questions" in line for line in lines) == 2
    assert any("of all 2 cells: eaglebench show " in line and "--paste" in line for line in lines)


@pytest.mark.parametrize("width", [80, 140])
def test_long_names_stand_once_on_the_screen(tmp_path: Path, width: int) -> None:
    """Four cells of seven arms take two screens, and no line but the last ones is cut or broken."""
    cells = [make_cell(page_size=p, chunked_prefill_size=c) for p in (1, 4) for c in (None, 8)]
    arms = ("radix", "force-miss", "no-cache", "unigram", "no-lookahead", "kv-reuse", "seam-guess")
    lines = shown(make_document(tmp_path, cells=cells, arms=arms), width)

    assert len(lines) < 120
    assert not any("page4-chunkoff-topk1" in line for line in lines)
    tables = [line for line in lines if line[:1] in "│┃┏┡└"]
    assert all(len(line) <= width for line in tables)
