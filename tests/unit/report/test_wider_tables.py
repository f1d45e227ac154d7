"""Tables over several cells or arms: drafts, allocation, faults; and none where there is nothing."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from eaglebench.plan.cell import Cell
from eaglebench.records.faults import FAULTS
from eaglebench.records.knobs import FAULT_ARMS
from eaglebench.report.document import ReportDocument
from eaglebench.report.markdown import render_markdown
from eaglebench.report.pull_request import render_pull_request
from eaglebench.report.table import Table
from eaglebench.report.terminal import render_run
from eaglebench.report.wider_tables import wider_tables
from eaglebench.stats.sweep import make_sweeps
from tests.fakes import Plant
from tests.sessions import make_cell
from tests.unit.report.toy_documents import make_document, with_sweeps, without_speed

SHAPES = ((1, 1, 2), (2, 1, 3), (2, 4, 9))


def make_cells(**knobs: object) -> list[Cell]:
    """Two chains and a tree."""
    return [
        make_cell(num_steps=steps, eagle_topk=topk, num_draft_tokens=tokens, **knobs)
        for steps, topk, tokens in SHAPES
    ]


def make_swept(root: Path, **options: object) -> ReportDocument:
    """The document of a run over draft shapes."""
    return with_sweeps(make_document(root, **options))  # type: ignore[arg-type]


def table_of(document: ReportDocument, name: str) -> Table:
    """One of a document's tables."""
    return next(table for table in wider_tables(document) if table.name == name)


def column(table: Table, head: str) -> list[str]:
    """The texts under a head."""
    place = [column.heading for column in table.columns].index(head)
    return [row[place] for row in table.texts]


def test_an_ordinary_run_has_none_of_them(tmp_path: Path) -> None:
    """One shape, no preallocation, no fault: nothing is added."""
    assert wider_tables(make_swept(tmp_path)) == []


def test_chains_are_a_table_over_k(tmp_path: Path) -> None:
    """Counts and vLLM's acceptance length of every chain, trees left out."""
    document = make_swept(tmp_path, cells=make_cells())
    table = table_of(document, "chains")
    chains = [row for row in document.rows if row.arm == "radix"][:2]

    assert column(table, "K") == ["1", "2"]
    assert column(table, "verify steps") == [str(row.counts.verify_steps) for row in chains]
    assert column(table, "drafted") == [str(row.counts.drafted) for row in chains]
    assert column(table, "accepted") == [str(row.counts.accepted) for row in chains]
    assert column(table, "al_vllm") == [f"{row.counts.al_vllm:.3f}" for row in chains]
    assert [len(text.split()) for text in column(table, "by position")] == [1, 2]


def test_every_shape_has_its_cost(tmp_path: Path) -> None:
    """One row a shape; the fastest and the reference are marked, and a sentence says why."""
    table = table_of(make_swept(tmp_path, cells=make_cells()), "sweep")

    assert column(table, "draft tokens") == ["2", "3", "9"]
    assert column(table, "ms a step") == ["10.00"] * 3
    notes = ", ".join(column(table, "note"))
    assert notes.count("fastest") == notes.count("reference") == 1
    assert table.remarks[0].startswith("fastest in this one pass is ")
    assert "acceptance " in table.remarks[0]
    assert "a step costs" in table.remarks[0]
    assert "there is no interval" in table.remarks[1]


def test_repeated_passes_bring_intervals(tmp_path: Path) -> None:
    """With two passes and more, times carry an interval and the second sentence counts passes."""
    table = table_of(make_swept(tmp_path, cells=make_cells(), passes="3"), "sweep")

    assert all("+-" in text for text in column(table, "token/s"))
    assert table.remarks[0].startswith("fastest is ")
    assert table.remarks[1].startswith("over 3 passes it is ")


def test_what_was_not_timed_is_a_dash(tmp_path: Path) -> None:
    """Without blocks the counts are shown and nothing is named."""
    document = make_document(tmp_path, cells=make_cells())
    swept = replace(document, sweeps=tuple(make_sweeps(document.run.turns, ())))
    table = table_of(swept, "sweep")

    assert column(table, "token/s") == column(table, "ms a step") == ["-"] * 3
    assert table.remarks == ()


def test_preallocation_shows_what_was_asked_of_the_allocator(tmp_path: Path) -> None:
    """Calls and pages of each policy, whole and by verify step."""
    cells = [make_cell(preallocation=policy) for policy in ("none", "covered")]
    document = make_document(tmp_path, cells=cells)
    table = table_of(document, "allocation")
    rows = [row for row in document.rows if row.arm == "radix"]

    assert column(table, "alloc calls") == [str(row.counts.alloc_calls) for row in rows]
    assert column(table, "pages taken") == [str(row.counts.pages_allocated) for row in rows]
    assert column(table, "pages returned") == [str(row.counts.pages_returned) for row in rows]
    calls = (rows[0].counts.alloc_calls or 0) / (rows[0].counts.verify_steps or 0)
    assert column(table, "calls / step")[0] == f"{calls:.3f}"


@pytest.mark.parametrize("arms", [["radix", "unigram", "no-cache"], ["unigram", "no-cache"]])
def test_faults_are_held_against_the_cache_without_them(tmp_path: Path, arms: list[str]) -> None:
    """Against radix where it ran, else against no-cache; the issue and the verdict beside it."""
    plants = {"unigram": [Plant(word="odd", gap=1.0)]}
    document = make_document(tmp_path, plants=plants, arms=arms)
    table = table_of(document, "faults")

    assert f"against {'radix' if 'radix' in arms else 'no-cache'}" in table.title
    assert column(table, "turns that differ") == ["1 of 7"]
    assert column(table, "shows") == ["seen"]
    told = f"unigram: {FAULTS['unigram'].what} (sglang#10846, sglang#11231); it shows when "
    assert table.remarks[0] == told + FAULTS["unigram"].shows_when
    other, common = map(int, column(table, "other drafts")[0].split(" of "))
    assert 0 < other < common


def test_a_fault_that_nothing_reached_is_not_exercised(tmp_path: Path) -> None:
    """Without chunks there is no seam; where prompts were cut, a fault that changes nothing is not seen."""
    cells = [make_cell(), make_cell(chunked_prefill_size=8)]
    document = make_document(tmp_path, cells=cells, arms=["seam-guess", "no-cache"])

    assert column(table_of(document, "faults"), "shows") == ["not exercised", "not seen"]


def test_a_fault_alone_has_nothing_to_be_held_against(tmp_path: Path) -> None:
    """Its own length is shown, everything else is a dash."""
    table = table_of(make_document(tmp_path, arms=["kv-reuse"]), "faults")

    assert tuple(table.texts[0][:2]) == ("kv-reuse", "-")
    assert tuple(table.texts[0][3:]) == ("-", "-", "-", "-")
    assert "against" not in table.title


def test_every_fault_arm_names_where_it_was_reported() -> None:
    """The arms are those of the registry, each with an issue of a public engine, or how it was found."""
    assert set(FAULT_ARMS) == set(FAULTS)
    assert all(
        "#" in issue or "docs/" in issue for fault in FAULTS.values() for issue in fault.issues
    )


def test_formats_for_people_show_the_same_tables(tmp_path: Path) -> None:
    """Markdown holds every caption and remark; the pull request's block folds the tables alone."""
    document = make_swept(tmp_path, cells=make_cells(), arms=["radix", "kv-reuse", "no-cache"])
    tables = wider_tables(document)

    assert [table.name for table in tables] == ["matrix", "chains", "sweep", "faults"]
    whole, short = render_markdown(document), render_pull_request(document)
    for table in tables:
        assert table.title in whole
        assert all(remark.split(":")[0] in whole for remark in table.remarks)
        assert table.title in short or table.name == "matrix"  # which has other words there


@pytest.mark.parametrize("width", [80, 140])
def test_the_terminal_shows_them_whole(tmp_path: Path, width: int) -> None:
    """No table is wider than the console, and no text is cut."""
    cells = make_cells(preallocation="covered")
    document = make_swept(tmp_path, cells=cells, arms=["radix", "no-lookahead", "no-cache"])
    tables = wider_tables(document)
    stream = io.StringIO()
    console = Console(file=stream, width=width)

    render_run(document, console, title="toy")

    text = stream.getvalue()
    own = text[text.index("Chains of K") : text.index("#questions")].splitlines()[:-1]
    names = ["matrix", "chains", "sweep", "allocation", "faults"]
    assert [table.name for table in tables] == names
    assert "…" not in text
    assert all(len(line) <= width for line in own)


def test_tables_need_no_times(tmp_path: Path) -> None:
    """Rows without times are shown with dashes."""
    document = without_speed(make_document(tmp_path, arms=["radix", "unigram", "no-cache"]))

    assert column(table_of(document, "faults"), "change") == ["+0.00%"]
