"""Rows of the run table: one a cell and arm, numbers only."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from eaglebench.contracts.knobs import FAULT_ARMS
from eaglebench.contracts.measured import MeasuredBlock, MeasuredTurn
from eaglebench.stats.acceptance import Counts, Speed, acceptance_by_position, pool, speed
from eaglebench.stats.pairing import Pair, PairClass, Tau, pair_turns
from eaglebench.stats.signflip import sign_flip_p_value

BASELINE = "no-cache"
CACHE = "radix"
"""What a fault arm is also compared with: the same cache without the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An arm against another one, question by question.

    `log_ratio` parts the throughput ratio: acceptance (al_sglang), step rate, decode share.
    """

    against: str
    pairs: tuple[Pair, ...]
    acceptance: float | None
    throughput: float | None
    log_ratio: tuple[float, float, float] | None
    p_value: float | None

    def count(self, kind: PairClass) -> int:
        """Turns of one class."""
        return Counter(pair.kind for pair in self.pairs)[kind]

    @property
    def num_same_output(self) -> int:
        """Turns with the same tokens in both arms."""
        return sum(pair.has_same_output for pair in self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cell and arm."""

    cell_id: str
    arm: str
    num_questions: int
    num_failed: int
    counts: Counts
    by_position: tuple[float, ...]
    speed: Speed | None
    differences: tuple[Difference, ...]

    @property
    def difference(self) -> Difference | None:
        """Against `no-cache`; None for `no-cache` itself and where it did not run."""
        return next((d for d in self.differences if d.against == BASELINE), None)

    def as_dict(self) -> dict[str, Any]:
        """Flat values for CSV and JSON."""
        counts = {n: getattr(self.counts, n) for n in Counts.__dataclass_fields__}
        return {
            "cell_id": self.cell_id,
            "arm": self.arm,
            "num_questions": self.num_questions,
            "num_failed": self.num_failed,
            **counts,
            "acceptance_length": self.counts.acceptance_length,
            "al_sglang": self.counts.al_sglang,
            "al_vllm": self.counts.al_vllm,
            "tokens_per_s": self.speed.tokens_per_s if self.speed else None,
        }


def make_rows(
    turns: Sequence[MeasuredTurn], blocks: Sequence[MeasuredBlock], tau: Tau
) -> list[Row]:
    """Rows in the order in which cells and arms first appear."""
    names = list(dict.fromkeys((turn.cell_id, turn.arm) for turn in turns))
    by_name = {name: [t for t in turns if (t.cell_id, t.arm) == name] for name in names}
    speeds = {name: _speed(name, by_name[name], blocks) for name in names}
    rows = []
    for cell_id, arm in names:
        mine = by_name[cell_id, arm]
        differences = tuple(
            _difference(
                (mine, speeds[cell_id, arm]),
                (by_name[cell_id, other], speeds[cell_id, other]),
                other,
                tau,
            )
            for other in _compared_with(arm)
            if (cell_id, other) in by_name
        )
        rows.append(
            Row(
                cell_id=cell_id,
                arm=arm,
                num_questions=len({t.question_id for t in mine if t.is_measured}),
                num_failed=sum(t.error is not None for t in mine),
                counts=pool(mine),
                by_position=acceptance_by_position(mine),
                speed=speeds[cell_id, arm],
                differences=differences,
            )
        )
    return rows


def _compared_with(arm: str) -> tuple[str, ...]:
    """Every arm with `no-cache`; one that shares pages wrongly with `radix` as well."""
    if arm == BASELINE:
        return ()
    return (BASELINE, CACHE) if arm in FAULT_ARMS else (BASELINE,)


def _speed(
    name: tuple[str, str], turns: Sequence[MeasuredTurn], blocks: Sequence[MeasuredBlock]
) -> Speed | None:
    steps = sum(turn.counters.verify_steps for turn in turns)
    return speed([b for b in blocks if (b.cell_id, b.arm) == name], steps)


def _difference(
    candidate: tuple[Sequence[MeasuredTurn], Speed | None],
    reference: tuple[Sequence[MeasuredTurn], Speed | None],
    against: str,
    tau: Tau,
) -> Difference:
    (turns, mine), (baseline, theirs) = candidate, reference
    lengths = pool(turns).acceptance_length, pool(baseline).acceptance_length
    acceptance = None
    if lengths[0] is not None and lengths[1]:
        acceptance = lengths[0] / lengths[1] - 1
    return Difference(
        against=against,
        pairs=tuple(pair_turns(turns, baseline, tau)),
        acceptance=acceptance,
        throughput=mine.tokens_per_s / theirs.tokens_per_s - 1 if mine and theirs else None,
        log_ratio=_split(mine, theirs),
        p_value=sign_flip_p_value(turns, baseline),
    )


def _split(mine: Speed | None, theirs: Speed | None) -> tuple[float, float, float] | None:
    """Ln of the three factors' ratios; they add up to ln of the throughput ratio."""
    if mine is None or theirs is None:
        return None
    factors = [
        (mine.al_sglang, theirs.al_sglang),
        (mine.step_rate, theirs.step_rate),
        (mine.decode_share, theirs.decode_share),
    ]
    logs = [log(a / b) for a, b in factors if a and b]
    return (logs[0], logs[1], logs[2]) if len(logs) == len(factors) else None
