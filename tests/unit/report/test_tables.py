"""Tables of rows, findings, partings and facts."""

import re
from collections.abc import Sequence
from dataclasses import replace
from math import inf, nan

import pytest

from eaglebench.records.measured import MeasuredRun
from eaglebench.records.observation import VerifyStep
from eaglebench.records.verdict import Finding, Judgement
from eaglebench.report.charts import chart_data
from eaglebench.report.judgement_table import findings_table
from eaglebench.report.phrases import FORMS, Interval, Value, cell_text
from eaglebench.report.row_tables import RUN_COLUMNS, facts_table, partings_table, runs_table
from eaglebench.report.rows import Row, make_rows
from eaglebench.report.table import Column
from eaglebench.stats.throughput import RatioEstimate
from tests.html_documents import TAU, make_document, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> MeasuredRun:
    """One scripted run for all tests: they only read it."""
    return make_run(tmp_path_factory.mktemp("html"))


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        *((None, form, "-") for form in FORMS),
        *((value, "ratio", "-") for value in (inf, -inf, nan)),
        ("words", "text", "words"),
        ("", "text", ""),
        (0, "count", "0"),
        (3, "signed", "+3"),
        (2.3456, "ratio", "2.346"),
        (1234567, "exact", "1234567"),
        (2.5, "exact", "2.5000"),
        (1.5, "factor", "1.500x"),
        (-0.00001, "change", "+0.00%"),
        (0.00001, "p", "< 0.0001"),
        (0.0625, "p", "0.0625"),
        ((0.9, 0.5), "brief", "0.90 0.50"),
        ((), "brief", "-"),
        (Interval(0.02, 0.01), "change", "+2.00% +- 1.00%"),
        (Interval(84.0, 0.015), "brief", "84.00 +- 1.5%"),
        (Interval(84.0, None), "brief", "84.00"),
        (Interval(None, 0.01), "brief", "-"),
    ],
)
def test_a_value_is_spelled_by_its_form(value: Value, form: str, text: str) -> None:
    """The same in every table; what was not measured is a dash, and 0 is a number."""
    assert cell_text(value, form) == text


def test_a_value_is_read_by_its_name(run: MeasuredRun) -> None:
    """A missing part is not measured; a name that nothing has is an error, not a dash."""
    baseline = next(row for row in make_document(run).rows if row.arm == "no-cache")

    assert Column("x", "difference.ratio.change").of(baseline) is None
    assert Column("x", "counts.verify_steps").of(baseline) == baseline.counts.verify_steps
    with pytest.raises(AttributeError):
        Column("x", "counts.verifysteps").of(baseline)


def test_long_lists_of_questions_are_counted() -> None:
    """Twelve are named, the others are a number."""
    names = tuple(f"q{n}" for n in range(30))
    finding = Finding(
        cell_id="*", arm="*", metric="*", verdict="FAILED", reason="all", questions=names
    )
    (row,) = findings_table(Judgement(candidate="a", baseline="b", findings=(finding,))).texts

    assert row[-1].endswith("q11 and 18 more")


def shown(rows: Sequence[Row], *headings: str) -> list[list[str]]:
    """These columns of a run's table."""
    return runs_table(rows, *headings).texts


def test_rows_show_their_numbers(run: MeasuredRun) -> None:
    """Every cell and arm has its row; `no-cache` is not compared with itself."""
    rows = make_document(run).rows
    lines = shown(rows, *RUN_COLUMNS)

    for row, texts in zip(rows, lines, strict=True):
        line = dict(zip(RUN_COLUMNS, texts, strict=True))
        assert (line["cell"], line["arm"]) == (row.cell_id, row.arm)
        assert line["acceptance length"] == f"{row.counts.acceptance_length:.3f}"
        counts = {
            "verify steps": row.counts.verify_steps,
            "cached tokens": row.counts.cached_tokens,
            "prefilled tokens": row.counts.prefill_tokens_computed,
            "pages taken": row.counts.pages_allocated,
            "alloc calls": row.counts.alloc_calls,
            "evictions": row.counts.evictions,
        }
        assert {name: line[name] for name in counts} == {n: str(c) for n, c in counts.items()}
        against = (line["length against no-cache"], line["throughput against no-cache"])
        assert (against == ("-", "-")) == (row.arm == "no-cache")


def test_missing_numbers_are_dashes(run: MeasuredRun) -> None:
    """A row without a block has no speed, and none is made up."""
    bare = replace(run, blocks=())
    document = make_document(bare)

    assert shown(document.rows, "token/s", "throughput against no-cache")[0] == ["-", "-"]
    assert chart_data(bare.turns, document.rows)["splits"] == []


def test_repeated_passes_show_their_interval(run: MeasuredRun) -> None:
    """The estimate over passes stands with its half-width."""
    row = make_document(run).rows[0]
    ratio = RatioEstimate(
        log_ratio=0.0, half_width=0.012, sd=0.01, passes=8, error=0.004, drift=None
    )
    row = replace(row, differences=(replace(row.differences[0], ratio=ratio),))

    assert shown([row], "throughput against no-cache") == [["+0.00% +- 1.20% (8 passes)"]]


def test_differing_turns_are_listed_gravest_first(run: MeasuredRun) -> None:
    """A fault with its common beginning, then the near-tie; identical turns are not listed."""
    table = partings_table(make_document(run).rows)
    kinds = [row[6] for row in table.texts]
    fault = table.texts[0]

    assert set(kinds) == {"target-state", "draft-state", "near-tie"}
    assert kinds == sorted(kinds, key=["target-state", "draft-state", "near-tie"].index)
    assert fault[:2] == ["target", "1"]
    assert fault[3:8] == ["unigram", "no-cache, radix", "diverged", "target-state", "target"]
    assert int(fault[11]) > 0
    assert float(fault[12]) >= 1
    assert re.fullmatch(r"[+-]\d+", fault[14])


def test_another_number_of_drafts_has_no_gap(run: MeasuredRun) -> None:
    """Where one arm drafted less there are no two logits to compare, and the table says so."""
    turns = tuple(
        replace(t, steps=(_cut(t.steps[0]), *t.steps[1:])) if t.arm == "radix" else t
        for t in run.turns
        if t.question_id == "tie"
    )
    table = partings_table(make_rows(turns, (), TAU))

    assert "other draft length" in {row[10] for row in table.texts}


def _cut(step: VerifyStep) -> VerifyStep:
    return replace(
        step,
        drafted_ids=step.drafted_ids[:1],
        draft_gaps=step.draft_gaps[:1],
        target_ids=step.target_ids[:2],
        accepted=0,
    )


def test_facts_are_flat_and_plain() -> None:
    """Nested values get dotted names; nothing, yes, no and lists are words."""
    table = facts_table(
        "x", "x", {"b": {"c": {"d": [1, 2]}}, "a": None, "e": True, "f": [], "g": {}}
    )

    assert [tuple(row) for row in table.texts] == [
        *(("b.c.d", "1, 2"), ("a", "-"), ("e", "yes"), ("f", "-"), ("g", "-"))
    ]


def test_a_failed_turn_is_counted_in_its_row(run: MeasuredRun) -> None:
    """The row says how many turns failed, and the differing turns name them."""
    turns = tuple(
        replace(t, error="too long") if (t.question_id, t.arm) == ("tie", "radix") else t
        for t in run.turns
    )
    rows: list[Row] = make_rows(turns, run.blocks, TAU)

    answered, asked = rows[0].num_questions, rows[0].num_asked
    assert answered == asked - 1
    assert shown(rows, "questions")[0] == [f"{answered} of {asked} (1 turn failed)"]
    assert partings_table(rows).rows[-1][6] != "identical"
    assert "failed" in {row[6] for row in partings_table(rows).rows}


def test_a_change_from_nothing_has_no_share() -> None:
    """An infinite change is a dash; the reason tells what happened."""
    finding = Finding(
        cell_id="c",
        arm="radix",
        metric="evictions",
        verdict="REGRESSED",
        reason="0 before, 3 now",
        change=float("inf"),
    )
    (row,) = findings_table(Judgement(candidate="a", baseline="b", findings=(finding,))).texts

    assert row[5] == "-"
