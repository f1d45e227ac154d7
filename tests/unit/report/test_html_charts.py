"""What the HTML page's charts draw."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from eaglebench.records.measured import MeasuredRun
from eaglebench.report.cell_names import CellNames, short_names
from eaglebench.report.charts import chart_data
from tests.html_documents import make_document, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> MeasuredRun:
    """One scripted run for all tests: they only read it."""
    return make_run(tmp_path_factory.mktemp("html"))


def test_charts_hold_the_counts_of_the_first_pass(run: MeasuredRun) -> None:
    """Histogram and questions sum to the pooled counters, prepared and repeated turns left out."""
    again = tuple(replace(turn, pass_index=1) for turn in run.turns)
    donor = replace(run.turns[0], is_measured=False, turn=7)
    document = make_document(run)
    data = chart_data((*run.turns, *again, donor), document.rows)

    for row, drawn in zip(document.rows, data["rows"], strict=True):
        assert sum(drawn["h"]) == row.counts.verify_steps
        assert sum(n * count for n, count in enumerate(drawn["h"])) == row.counts.accepted
        totals = data["asked"][drawn["c"]]["y"][drawn["a"]]
        assert sum(totals[::2]) == row.counts.emitted
        assert sum(totals[1::2]) == row.counts.verify_steps


def test_differing_questions_are_drawn_first(run: MeasuredRun) -> None:
    """A cut of the questions takes those that are the same in all arms."""
    data = chart_data(run.turns, make_document(run).rows)
    names = [data["questions"][number] for number in data["asked"][0]["q"]]

    assert set(names[:2]) <= {"target", "draft", "tie"}
    assert set(names) == {turn.question_id for turn in run.turns}


def test_too_many_questions_are_cut_and_counted(
    run: MeasuredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data names how many questions it left out."""
    monkeypatch.setattr("eaglebench.report.charts.MAX_DOTS", 12)
    data = chart_data(run.turns, make_document(run).rows)

    assert [len(cell["q"]) for cell in data["asked"]] == [2, 2]
    assert data["left_out"]["questions"] == 10


def test_counts_that_nobody_told_are_no_zero(run: MeasuredRun) -> None:
    """A question with such a turn has no dot, rather than one at what its other turns add up to."""
    first = run.turns[0]
    untold = replace(first.counters, verify_steps=None)
    turns = (*run.turns, replace(first, turn=7, counters=untold))
    data = chart_data(turns, make_document(run).rows)

    asked = data["asked"][data["cells"].index(first.cell_id)]
    place = asked["q"].index(data["questions"].index(first.question_id))
    for arm, flat in zip(data["arms"], asked["y"], strict=True):
        dot = flat[2 * place : 2 * place + 2]
        assert (dot == [0, 0]) == (arm == first.arm)


@pytest.mark.parametrize(
    ("cells", "short", "shared"),
    [
        (["page1-off-topk1", "page4-off-topk1"], ["page1", "page4"], "off-topk1"),
        (["page1-off"], ["page1-off"], ""),
        (["page1-off", "odd"], ["page1-off", "odd"], ""),
        (["page1-off-x1", "page1-off-x1-lru"], ["default", "lru"], "page1-off-x1"),
        (["a1-b", "a2-b-c", "a2-b-d"], ["a1", "a2-c", "a2-d"], "b"),
        (["a-b", "a-b"], ["a-b", "a-b"], ""),
        ([], [], ""),
    ],
)
def test_shared_parts_of_names_are_said_once(
    cells: Sequence[str], short: list[str], shared: str
) -> None:
    """Only what differs between cells is left of their names."""
    assert short_names(cells) == (short, shared)


@pytest.mark.parametrize(
    ("cells", "title"),
    [
        (["page1-chunkoff"], "page1-chunkoff"),
        (["page1-chunkoff", "page16-chunkoff"], "chunkoff"),
        (["page1-chunk16", "page16-chunkoff"], ""),
        ([], ""),
    ],
)
def test_a_title_names_what_all_cells_share(cells: list[str], title: str) -> None:
    """A single cell is named whole; of cells that share nothing there is nothing to name."""
    assert CellNames(cells).title == title
