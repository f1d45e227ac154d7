"""What the charts of the HTML page draw, as compact JSON values; the page's script draws it."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.records.measured import MeasuredTurn
from eaglebench.report.cell_names import short_names
from eaglebench.report.rows import Row
from eaglebench.report.sweep_tables import shape_text
from eaglebench.stats.against import ArmAgainst
from eaglebench.stats.sweep import Sweep

MAX_ROWS = 2000
"""Cells times arms that are drawn."""
MAX_DOTS = 40_000
"""Cells times arms times questions that are drawn; two small integers each."""
DIGITS = 6

Totals = Mapping[tuple[str, str], Mapping[str, Sequence[int]]]
"""Delivered tokens and verify steps, by cell and arm, then by question."""


def chart_data(
    turns: Sequence[MeasuredTurn],
    rows: Sequence[Row],
    sweeps: Sequence[Sweep] = (),
    against: Sequence[ArmAgainst] = (),
) -> dict[str, Any]:
    """Everything the charts need; what was cut is counted in `left_out`.

    Cells, arms and questions are named once and meant by their index everywhere else.
    """
    drawn = rows[:MAX_ROWS]
    cells = list(dict.fromkeys(row.cell_id for row in drawn))
    arms = list(dict.fromkeys(row.arm for row in drawn))

    def place(row: Row) -> dict[str, Any]:
        return {"c": cells.index(row.cell_id), "a": arms.index(row.arm)}

    chosen = [t for t in turns if t.pass_index == 0 and t.is_measured and t.error is None]
    short, shared = short_names(cells)
    steps = _accepted(chosen)
    questions, asked, num_cut = _questions(chosen, cells, arms)
    _add_baseline(asked, against, questions, cells, arms)
    return {
        "cells": cells,
        "short": short,
        "shared": shared,
        "arms": arms,
        "baseline": BASELINE_ARM,
        "held": bool(against),
        "rows": [{**place(row), **_row(row, steps)} for row in drawn],
        "splits": [
            {**place(row), "o": held.against, "l": [_rounded(part) for part in held.log_ratio]}
            for row in drawn
            for held in row.differences
            if held.log_ratio is not None
        ],
        "sweeps": [_sweep(sweep) for sweep in sweeps],
        "questions": questions,
        "asked": asked,
        "left_out": {"rows": len(rows) - len(drawn), "questions": num_cut},
    }


def _sweep(sweep: Sweep) -> dict[str, Any]:
    """What a step of each draft shape costs and brings; shapes without times are left out."""
    return {
        "n": f"{sweep.setting} {sweep.arm}",
        "p": [
            {
                "t": shape_text(cell.draft),
                "k": cell.draft.eagle_topk,
                "s": cell.draft.num_steps,
                "ms": _rounded(cell.step_ms),
                "al": _rounded(cell.counts.acceptance_length),
                "ts": _rounded(cell.speed.tokens_per_s if cell.speed else None),
                "f": sweep.fastest is not None and cell is sweep.fastest.cell,
            }
            for cell in sweep.cells
            if cell.step_ms and cell.counts.acceptance_length
        ],
    }


def _row(row: Row, steps: Mapping[tuple[str, str], Counter[int]]) -> dict[str, Any]:
    counted = steps.get((row.cell_id, row.arm), Counter())
    difference = row.difference
    return {
        "p": [_rounded(share) for share in row.by_position],
        "h": [counted[number] for number in range(max(counted, default=-1) + 1)],
        "al": _rounded(row.counts.acceptance_length),
        "ch": _rounded(difference.acceptance if difference else None),
        "ts": _rounded(row.tokens_per_s),
    }


def _accepted(turns: Sequence[MeasuredTurn]) -> dict[tuple[str, str], Counter[int]]:
    """Verify steps by the number of drafts they accepted."""
    steps: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for turn in turns:
        steps[turn.cell_id, turn.arm].update(turn.accepted_per_step or ())
    return steps


def _questions(
    turns: Sequence[MeasuredTurn], cells: Sequence[str], arms: Sequence[str]
) -> tuple[list[str], list[dict[str, Any]], int]:
    """Names of the questions, each cell's totals for the paired dots, and how many were cut."""
    totals = _totals(turns)
    numbers: dict[str, int] = {}
    asked = []
    num_cut = 0
    limit = max(1, MAX_DOTS // max(1, len(cells) * len(arms)))
    for cell in cells:
        names = _by_difference(totals, cell, arms)
        num_cut += max(0, len(names) - limit)
        names = names[:limit]
        asked.append(
            {
                "q": [numbers.setdefault(name, len(numbers)) for name in names],
                "y": [_flat(totals.get((cell, arm), {}), names) for arm in arms],
            }
        )
    return list(numbers), asked, num_cut


def _add_baseline(
    asked: list[dict[str, Any]],
    against: Sequence[ArmAgainst],
    questions: Sequence[str],
    cells: Sequence[str],
    arms: Sequence[str],
) -> None:
    """The baseline's tokens and steps of the same questions, arm by arm, where there is one."""
    sides = {(each.cell_id, each.arm): each.questions for each in against}
    for cell, shown in zip(cells, asked, strict=True):
        if against:
            names = [questions[number] for number in shown["q"]]
            shown["b"] = [_flat(sides.get((cell, arm), {}), names) for arm in arms]


def _totals(turns: Sequence[MeasuredTurn]) -> Totals:
    """A question with a turn that does not tell its counts has no total, which is not 0."""
    totals: defaultdict[tuple[str, str], dict[str, tuple[int, int]]] = defaultdict(dict)
    untold = set()
    for turn in turns:
        place, name, counters = (turn.cell_id, turn.arm), turn.question_id, turn.counters
        if counters.emitted is None or counters.verify_steps is None:
            untold.add((place, name))
            continue
        tokens, steps = totals[place].get(name, (0, 0))
        totals[place][name] = tokens + counters.emitted, steps + counters.verify_steps
    for place, name in untold:
        totals[place].pop(name, None)
    return totals


def _by_difference(totals: Totals, cell: str, arms: Sequence[str]) -> list[str]:
    """Questions of a cell, those that are not the same in all its arms first."""
    sides = [totals[cell, arm] for arm in arms if (cell, arm) in totals]
    names = dict.fromkeys(name for side in sides for name in side)
    return sorted(names, key=lambda name: len({tuple(side.get(name, ())) for side in sides}) < 2)


def _flat(side: Mapping[str, Sequence[int]], names: Sequence[str]) -> list[int]:
    """Tokens and steps of each question in one flat list; no steps, no dot."""
    return [number for name in names for number in side.get(name, (0, 0))]


def _rounded(value: float | None) -> float | None:
    """Digits that a chart can show; what JSON can't hold is missing."""
    if value is None or not isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")
