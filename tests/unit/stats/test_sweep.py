"""Which draft shape is the fastest, and how surely."""

from collections.abc import Sequence
from dataclasses import asdict
from math import exp, log

import pytest

from eaglebench.records.knobs import DraftKnobs, EngineKnobs
from eaglebench.records.measured import MeasuredBlock, MeasuredTurn
from eaglebench.records.observation import StepTimes
from eaglebench.stats.sweep import Sweep, make_sweeps
from tests import turns

CHAIN = DraftKnobs(2, 1, 3)
SHORT = DraftKnobs(1, 1, 2)
TREE = DraftKnobs(3, 4, 13)
PLAIN = DraftKnobs(0, 1, 1)
TOKENS = 120


def make_turn(draft: DraftKnobs, *, arm: str = "radix", setting: str = "page1") -> MeasuredTurn:
    """A turn of no steps in the cell of a draft shape; sweeps look at its place only."""
    knobs = EngineKnobs(**asdict(draft))
    return turns.make_turn(cell_id=f"{setting}-{draft.name}", arm=arm, knobs=knobs)


def make_blocks(
    draft: DraftKnobs, step_s: Sequence[float], *, steps: int = 60, prefill_s: float = 1.0
) -> list[MeasuredBlock]:
    """A pass for each time of a step; all passes deliver the same tokens."""
    return [
        MeasuredBlock(
            cell_id=f"page1-{draft.name}",
            arm="radix",
            pass_index=number,
            block=0,
            order=0,
            question_ids=("q",),
            output_tokens=TOKENS,
            verify_steps=steps,
            wall_s=prefill_s + steps * seconds,
            times=StepTimes(
                prefill_s=prefill_s,
                mixed_s=0.0,
                decode_s=steps * seconds,
                prefill_steps=1,
                mixed_steps=0,
                decode_steps=steps,
            ),
        )
        for number, seconds in enumerate(step_s)
    ]


def make_sweep(*cells: tuple[DraftKnobs, list[MeasuredBlock]]) -> Sweep:
    """The sweep over some shapes."""
    turns = [make_turn(draft) for draft, _ in cells]
    (sweep,) = make_sweeps(turns, [block for _, blocks in cells for block in blocks])
    return sweep


def test_one_shape_is_no_sweep() -> None:
    """Cells that differ in something else, or in nothing, are not put side by side."""
    turns = [make_turn(CHAIN), make_turn(CHAIN, setting="page16"), make_turn(CHAIN, arm="no-cache")]

    assert make_sweeps(turns, []) == []


def test_each_setting_is_a_sweep_of_its_own() -> None:
    """Shapes are compared where page size and everything else are the same, in the cache's arm."""
    turns = [
        make_turn(draft, setting=setting, arm=arm)
        for setting in ("page1", "page16")
        for draft in (CHAIN, TREE)
        for arm in ("no-cache", "radix")
    ]

    sweeps = make_sweeps(turns, [])

    assert [(sweep.setting, sweep.arm) for sweep in sweeps] == [
        ("page1", "radix"),
        ("page16", "radix"),
    ]
    assert [[cell.draft for cell in sweep.cells] for sweep in sweeps] == [[CHAIN, TREE]] * 2
    assert all(sweep.fastest is None for sweep in sweeps)


def test_the_reference_is_the_best_chain() -> None:
    """Neither a tree nor plain decoding, whichever is faster."""
    sweep = make_sweep(
        (PLAIN, make_blocks(PLAIN, [0.001])),
        (SHORT, make_blocks(SHORT, [0.03])),
        (CHAIN, make_blocks(CHAIN, [0.02])),
        (TREE, make_blocks(TREE, [0.01])),
    )

    assert sweep.reference.draft == CHAIN
    assert [chain.draft for chain in sweep.chains] == [PLAIN, SHORT, CHAIN]


def test_factors_explain_the_fastest_cell() -> None:
    """The parts multiply to the factor: more tokens a step, dearer steps, another decode share."""
    sweep = make_sweep(
        (CHAIN, make_blocks(CHAIN, [0.02], steps=60)), (TREE, make_blocks(TREE, [0.03], steps=30))
    )
    fastest = sweep.fastest

    assert fastest is not None
    assert (fastest.cell.draft, fastest.rival.draft) == (TREE, CHAIN)
    assert fastest.factor == pytest.approx((1 + 60 * 0.02) / (1 + 30 * 0.03))
    assert fastest.log_factors is not None
    assert sum(fastest.log_factors) == pytest.approx(log(fastest.factor))
    assert [exp(part) for part in fastest.log_factors[:2]] == pytest.approx([2.0, 0.02 / 0.03])
    assert fastest.cell.step_ms == pytest.approx(30.0)


def test_a_fast_chain_is_held_against_the_best_tree() -> None:
    """Where a chain wins, the reader asks what a tree would have brought."""
    sweep = make_sweep(
        (SHORT, make_blocks(SHORT, [0.021])),
        (CHAIN, make_blocks(CHAIN, [0.02])),
        (TREE, make_blocks(TREE, [0.05])),
    )

    assert sweep.fastest is not None
    assert (sweep.fastest.cell.draft, sweep.fastest.rival.draft) == (CHAIN, TREE)


def test_one_pass_tells_nothing_apart() -> None:
    """The fastest cell is named, but without an interval everything else is tied."""
    sweep = make_sweep((CHAIN, make_blocks(CHAIN, [0.01])), (TREE, make_blocks(TREE, [0.1])))
    fastest = sweep.fastest

    assert fastest is not None
    assert not fastest.has_interval
    assert [cell.draft for cell in fastest.tied] == [TREE]
    assert all(cell.rate_half_width is None for cell in sweep.cells)


def test_passes_are_paired_over_a_drifting_machine() -> None:
    """The machine slows down threefold; the ratio of the two cells stays and tells them apart."""
    drift = [0.01 * (1 + number / 4) for number in range(8)]
    close = [seconds * (1.001 if number % 2 else 0.999) for number, seconds in enumerate(drift)]
    sweep = make_sweep(
        (CHAIN, make_blocks(CHAIN, drift, prefill_s=0.0)),
        (SHORT, make_blocks(SHORT, close, prefill_s=0.0)),
        (TREE, make_blocks(TREE, [1.2 * seconds for seconds in close], prefill_s=0.0)),
    )
    fastest = sweep.fastest

    assert fastest is not None
    assert fastest.passes == 8
    assert {fastest.cell.draft, *(cell.draft for cell in fastest.tied)} == {CHAIN, SHORT}
    tree = next(cell for cell in sweep.cells if cell.draft == TREE)
    assert tree.ratio is not None
    assert tree.ratio.log_ratio == pytest.approx(-log(1.2), abs=0.01)


def test_passes_that_one_cell_lacks_are_left_out() -> None:
    """A later, slower pass of one cell does not make it the slower cell."""
    sweep = make_sweep(
        (CHAIN, make_blocks(CHAIN, [0.01, 0.01])), (TREE, make_blocks(TREE, [0.009, 0.009, 0.5]))
    )

    assert sweep.fastest is not None
    assert sweep.fastest.cell.draft == TREE
