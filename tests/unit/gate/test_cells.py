"""Cells against cells: a fault that sits in every arm, and what changes drafts by right."""

from dataclasses import replace
from typing import Any

import pytest

from eaglebench.gate.cells import judge_cells
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.measured import MeasuredTurn
from eaglebench.records.verdict import Verdict
from eaglebench.stats.cells import ACROSS_CELLS, CellDifference, compare_cells
from eaglebench.stats.tau import Tau
from tests.turns import make_step, make_turn

TAU = Tau(target=9.0, draft=9.0, target_swing=0.5, draft_swing=0.5)
OUTPUT = (1, 3, 4, 5)
PLAIN = make_turn(make_step(10, (3, 4), (3, 4, 5), 2), output=OUTPUT)
FAULTY = make_turn(
    make_step(10, (8, 4), (3, 4, 5), 0), make_step(11, (4,), (4, 5), 1), output=OUTPUT
)
CLOSE = replace(FAULTY, steps=(replace(FAULTY.steps[0], draft_gaps=(-4.9, 5.0)), FAULTY.steps[1]))


def in_cell(turn: MeasuredTurn, name: str, arm: str = "radix", **knobs: Any) -> MeasuredTurn:
    """The turn in another cell."""
    window = knobs.pop("window", None)
    made = EngineKnobs(arm=arm, **knobs)
    return replace(turn, cell_id=name, arm=arm, knobs=made, window=window)


def compared(*turns: MeasuredTurn) -> list[CellDifference]:
    """Cells against cells."""
    return compare_cells(turns, (), TAU)


@pytest.mark.parametrize(
    "knobs",
    [
        {"page_size": 16},
        {"chunked_prefill_size": 16},
        {"parallel": 4},
        {"preallocation": "covered"},
        {"eviction_policy": "fifo"},
    ],
)
def test_a_fault_in_every_arm_of_a_cell_is_a_regression(knobs: dict[str, Any]) -> None:
    """All arms of the cell agree, so nothing but the other cell can tell."""
    found = compared(
        *(in_cell(PLAIN, "first", arm) for arm in ("radix", "no-cache")),
        *(in_cell(FAULTY, "second", arm, **knobs) for arm in ("radix", "no-cache")),
    )

    findings = judge_cells(found)
    assert [(f.cell_id, f.arm) for f in findings] == [("second", "radix"), ("second", "no-cache")]
    assert {f.verdict for f in findings} == {"REGRESSED"}
    assert {f.metric for f in findings} == {ACROSS_CELLS}
    assert {f.tier for f in findings} == {"matched"}
    assert all(f.questions == ("q",) and f.change == 1.5 / 3 - 1 for f in findings)
    assert "from first" in findings[0].reason


@pytest.mark.parametrize(
    ("turn", "verdict"), [(PLAIN, "PASS"), (CLOSE, "PASS"), (FAULTY, "REGRESSED")]
)
def test_a_near_tie_is_no_fault_between_cells(turn: MeasuredTurn, verdict: Verdict) -> None:
    """Chunks and pages change the shapes of matrices, as arms do."""
    (finding,) = judge_cells(
        compared(in_cell(PLAIN, "first"), in_cell(turn, "second", page_size=16))
    )

    assert finding.verdict == verdict


@pytest.mark.parametrize(
    "changes", [{"num_steps": 1, "num_draft_tokens": 2}, {"sliding_window": 8}, {"window": 8}]
)
def test_what_changes_drafts_by_right_is_compared_without_a_verdict(
    changes: dict[str, Any],
) -> None:
    """Shape and window."""
    (found,) = compared(in_cell(PLAIN, "first"), in_cell(FAULTY, "second", **changes))

    assert not found.is_exact
    assert found.difference.acceptance == 1.5 / 3 - 1
    assert judge_cells([found]) == []


def test_another_precision_changes_drafts_by_right() -> None:
    """Half precision rounds every logit."""
    half = replace(in_cell(FAULTY, "second"), dtype="bfloat16")

    assert judge_cells(compared(in_cell(PLAIN, "first"), half)) == []


def test_a_cell_is_held_against_the_first_of_its_own_shape() -> None:
    """A fault of page 16 shows in every shape, not only in that of the first cell."""
    shape: dict[str, Any] = {"num_steps": 1, "num_draft_tokens": 2}
    found = compared(
        in_cell(PLAIN, "a"),
        in_cell(PLAIN, "b", page_size=16),
        in_cell(PLAIN, "c", **shape),
        in_cell(FAULTY, "d", page_size=16, **shape),
    )

    assert [(f.cell_id, f.difference.against, f.is_exact) for f in found] == [
        ("b", "a", True),
        ("c", "a", False),
        ("d", "c", True),
    ]
    assert [(f.cell_id, f.verdict) for f in judge_cells(found)] == [
        ("b", "PASS"),
        ("d", "REGRESSED"),
    ]
    assert found[-1].axes == ("page_size",)


def test_planted_faults_are_never_judged_between_cells() -> None:
    """They are there to be seen."""
    found = compared(
        in_cell(PLAIN, "first", "seam-guess"),
        in_cell(FAULTY, "second", "seam-guess", chunked_prefill_size=16),
    )

    assert found[0].has_faults
    assert judge_cells(found) == []


def test_only_what_both_cells_asked_counts() -> None:
    """Suites may ask other questions in other cells; without a common one nothing is judged."""
    other = replace(FAULTY, question_sha256="b" * 64)
    first = in_cell(replace(PLAIN, question_sha256="a" * 64), "first")
    found = compared(first, in_cell(other, "second", page_size=16))

    assert found[0].num_left_out == 1
    assert found[0].difference.pairs == ()
    assert judge_cells(found) == []


def test_one_cell_has_nothing_to_stand_against() -> None:
    """Whatever its arms."""
    assert compared(in_cell(PLAIN, "a"), in_cell(PLAIN, "a", "no-cache")) == []
