"""An arm against another one of the same questions: everything that can be said about the two."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from eaglebench.records.counters import Counters
from eaglebench.records.measured import MeasuredBlock, MeasuredTurn
from eaglebench.stats.acceptance import Speed, by_arm, pool, speed, split_ratio
from eaglebench.stats.pairing import Pair, PairClass, pair_turns
from eaglebench.stats.signflip import sign_flip_p_value
from eaglebench.stats.tau import CloseShares, Tau, close_shares
from eaglebench.stats.throughput import RatioEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One arm's measured turns (first pass) and timed blocks (all passes)."""

    turns: tuple[MeasuredTurn, ...]
    blocks: tuple[MeasuredBlock, ...]

    @property
    def counts(self) -> Counters:
        """Pooled counts."""
        return pool(self.turns)

    @property
    def speed(self) -> Speed | None:
        """Throughput over all blocks."""
        return speed(self.blocks)


def sides_of(
    turns: Iterable[MeasuredTurn], blocks: Iterable[MeasuredBlock]
) -> dict[tuple[str, str], Side]:
    """Sides by cell and arm, in the order in which they first have a turn."""
    timed = by_arm(blocks)
    return {
        key: Side(turns=tuple(mine), blocks=tuple(timed.get(key, ())))
        for key, mine in by_arm(turns).items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An arm against another one, question by question.

    Attributes:
        against: name of the other arm.
        pairs: every turn in both.
        counts, other_counts: pooled.
        acceptance: relative change of the acceptance length.
        throughput: relative change of tokens a second, pooled over all passes.
        log_ratio: parts of the throughput ratio: acceptance (al_sglang), step rate, decode share.
        ratio: the throughput ratio over repeated passes; None where they were not paired.
        p_value: one-sided chance of so many more verify steps (paired sign-flip by question).
        close: shares of both sides' choices that noise could turn.
    """

    against: str
    pairs: tuple[Pair, ...]
    counts: Counters
    other_counts: Counters
    acceptance: float | None
    throughput: float | None
    log_ratio: tuple[float, float, float] | None
    ratio: RatioEstimate | None
    p_value: float | None
    close: CloseShares

    def count(self, kind: PairClass) -> int:
        """Turns of one class."""
        return Counter(pair.kind for pair in self.pairs)[kind]

    @property
    def num_same_output(self) -> int:
        """Turns with the same tokens in both arms."""
        return sum(pair.has_same_output for pair in self.pairs)


def make_difference(
    mine: Side, theirs: Side, against: str, tau: Tau, ratio: RatioEstimate | None = None
) -> Difference:
    """Compare two sides; `ratio` is the estimate over passes where they were interleaved.

    Counts and times are those of what both answered: of a run that is not over, or was asked fewer
    questions, nothing else can be held against the other.
    """
    pairs = tuple(pair_turns(mine.turns, theirs.turns, tau))
    mine, theirs = _shared(mine, theirs), _shared(theirs, mine)
    counts, other_counts = mine.counts, theirs.counts
    my_speed, their_speed = mine.speed, theirs.speed
    lengths = counts.acceptance_length, other_counts.acceptance_length
    acceptance = None
    if lengths[0] is not None and lengths[1]:
        acceptance = lengths[0] / lengths[1] - 1
    throughput = None
    if my_speed and their_speed:
        throughput = my_speed.tokens_per_s / their_speed.tokens_per_s - 1
    return Difference(
        against=against,
        pairs=pairs,
        counts=counts,
        other_counts=other_counts,
        acceptance=acceptance,
        throughput=throughput,
        log_ratio=split_ratio(my_speed, their_speed),
        ratio=ratio,
        p_value=sign_flip_p_value(mine.turns, theirs.turns),
        close=close_shares((*mine.turns, *theirs.turns), tau),
    )


def _shared(mine: Side, theirs: Side) -> Side:
    """The turns that both answered, and the blocks of the same questions."""
    answers = {(t.question_id, t.turn) for t in theirs.turns if t.error is None}
    blocks = {(b.pass_index, b.block, b.question_ids) for b in theirs.blocks}
    return Side(
        turns=tuple(
            t for t in mine.turns if t.error is None and (t.question_id, t.turn) in answers
        ),
        blocks=tuple(b for b in mine.blocks if (b.pass_index, b.block, b.question_ids) in blocks),
    )
