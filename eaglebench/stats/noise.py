"""A against A: how far one arm differs from itself, in tokens and in time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from eaglebench.records.knobs import AGAIN
from eaglebench.records.measured import MeasuredBlock, MeasuredRun, MeasuredTurn
from eaglebench.stats.acceptance import pool
from eaglebench.stats.throughput import (
    RatioEstimate,
    estimate_ratio,
    pairs_needed,
    pass_log_ratios,
)

WANTED_CHANGE = 0.02
"""The change of throughput people want to see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """One cell and arm measured against itself.

    Attributes:
        lengths: acceptance lengths of all passes and how often each came up, the commonest first.
        flipped: questions whose tokens or accepted counts were not the same in every pass.
        ratio: throughput against itself; None without a pair.
        pairs_needed: pairs to see a change of `WANTED_CHANGE`; None with fewer than two pairs.
        minutes_needed: time those take on this machine.
    """

    cell_id: str
    arm: str
    lengths: tuple[tuple[float, int], ...]
    flipped: tuple[str, ...]
    ratio: RatioEstimate | None
    pairs_needed: int | None
    minutes_needed: float | None


def measure_noise(run: MeasuredRun) -> list[Noise]:
    """The noise of every cell in which an arm ran beside itself."""
    names = dict.fromkeys((turn.cell_id, turn.arm) for turn in run.turns)
    return [
        _noise(run, cell_id, arm.removesuffix(AGAIN))
        for cell_id, arm in names
        if arm.endswith(AGAIN)
    ]


def _noise(run: MeasuredRun, cell_id: str, arm: str) -> Noise:
    both = (arm, arm + AGAIN)
    turns = [t for t in run.turns if t.cell_id == cell_id and t.arm in both]
    passes: dict[tuple[str, int], list[MeasuredTurn]] = {}
    for turn in turns:
        passes.setdefault((turn.arm, turn.pass_index), []).append(turn)
    lengths = Counter(
        length for mine in passes.values() if (length := pool(mine).acceptance_length) is not None
    )
    ratio = estimate_ratio(pass_log_ratios(run.blocks, cell_id, arm + AGAIN, arm))
    needed = pairs_needed(ratio.sd, WANTED_CHANGE) if ratio and ratio.sd is not None else None
    blocks = [b for b in run.blocks if b.cell_id == cell_id and b.arm in both]
    return Noise(
        cell_id=cell_id,
        arm=arm,
        lengths=tuple(lengths.most_common()),
        flipped=_flipped(turns),
        ratio=ratio,
        pairs_needed=needed,
        minutes_needed=needed * _pair_s(blocks) / 60 if needed is not None else None,
    )


def _flipped(turns: Sequence[MeasuredTurn]) -> tuple[str, ...]:
    seen: dict[tuple[str, int], set[tuple[tuple[int, ...], tuple[int | None, ...]]]] = {}
    for turn in turns:
        answers = seen.setdefault((turn.question_id, turn.turn), set())
        answers.add((turn.output_token_ids, turn.acceptance))
    return tuple(dict.fromkeys(name for (name, _), answers in seen.items() if len(answers) > 1))


def _pair_s(blocks: Sequence[MeasuredBlock]) -> float:
    """Seconds one pass takes through both arms."""
    passes = {block.pass_index for block in blocks}
    return sum(block.wall_s for block in blocks) / len(passes) if passes else 0.0
