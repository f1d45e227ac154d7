"""Tables of two sides: two runs, two arms of one turn, an arm beside itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from eaglebench.records.measured import MeasuredTurn
from eaglebench.records.observation import VerifyStep
from eaglebench.report.phrases import cell_text, changed_counters
from eaglebench.report.table import Column, Table, make_table, read
from eaglebench.stats.difference import Difference
from eaglebench.stats.noise import WANTED_CHANGE, Noise
from eaglebench.stats.pairing import NOT_PAIRED, Pair, Tier
from eaglebench.stats.tau import Tau

TIERS: tuple[Tier, ...] = ("identical", "matched", "diverged")
TokenText = Callable[[Sequence[int]], str]
_CAUSES = {
    "draft": "the head proposed another token from the same beginning",
    "target": "the target itself chose another token",
}
_UNPAIRED = {
    "failed": "the turn failed in one of them",
    "other-prompts": "the question asks something else there",
    "diverged-prompt": "an earlier answer differed, so the prompts do",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRow:
    """One cell and arm of the later run against the earlier one."""

    cell_id: str
    arm: str
    difference: Difference


def runs_pair_table(rows: Sequence[PairedRow], title: str, *, is_wide: bool) -> Table:
    """Lengths and tiers, and every exact counter that changed if there is room."""
    columns = [
        *(Column("cell", "cell_id"), Column("arm", "arm")),
        Column(
            "acceptance length", read("difference", _lengths), is_right=True, short="accept. length"
        ),
        Column("change", "difference.acceptance", "change"),
        *(Column(tier, read("difference", partial(_of_tier, tier)), "count") for tier in TIERS),
    ]
    if is_wide:
        changed = read("difference", lambda found: changed_counters(found) or "none")
        columns.append(Column("counters that changed", changed))
    return make_table(columns, rows, title=title)


def _lengths(difference: Difference) -> str:
    sides = difference.other_counts, difference.counts
    return " -> ".join(cell_text(counts.acceptance_length, "ratio") for counts in sides)


def _of_tier(tier: Tier, difference: Difference) -> int:
    return sum(pair.tier == tier for pair in difference.pairs)


class _Noise(NamedTuple):
    dtype: str
    noise: Noise


NOISE_COLUMNS = (
    *(Column("dtype", "dtype"), Column("cell", "noise.cell_id"), Column("arm", "noise.arm")),
    Column("passes", read("noise.lengths", lambda found: sum(n for _, n in found)), "count"),
    Column("distinct lengths", read("noise.lengths", len), "count"),
    Column("flipped questions", read("noise.flipped", len), "count"),
    Column("sigma a pair", "noise.ratio.sd", "share"),
    Column("smallest effect", "noise.ratio.mde", "share"),
    Column(f"pairs for {WANTED_CHANGE:.0%}", "noise.pairs_needed", "count"),
    Column("minutes", "noise.minutes_needed", "tenths"),
)


def noise_table(found: Iterable[tuple[str, Noise]]) -> Table:
    """What calibration found at each dtype, in each cell."""
    return make_table(NOISE_COLUMNS, (_Noise(*each) for each in found), title="A against A")


def steps_table(mine: MeasuredTurn, other: MeasuredTurn | None, text: TokenText) -> Table:
    """The steps of a turn, beside those of another arm that start at the same position."""
    columns = [Column("position", int, "count")]
    sides = [{step.position: step for step in turn.steps} for turn in (mine, other) if turn]
    for turn, steps in zip((mine, other), sides, strict=False):
        columns += [
            Column(turn.arm if turn else "", partial(_tokens, steps, text)),
            Column("acc.", partial(_accepted, steps), is_right=True),
        ]
    return make_table(columns, sorted({position for steps in sides for position in steps}))


def _tokens(steps: Mapping[int, VerifyStep], text: TokenText, position: int) -> str:
    """Drafted tokens, and the target's choice behind the accepted ones."""
    step = steps.get(position)
    if step is None:
        return ""
    choice = step.target_ids[step.accepted : step.accepted + 1]
    return f"{text(step.drafted_ids)} | {text(choice)}"


def _accepted(steps: Mapping[int, VerifyStep], position: int) -> str:
    step = steps.get(position)
    return f"{step.accepted}/{len(step.drafted_ids)}" if step else ""


def parted_position(mine: MeasuredTurn, pair: Pair | None) -> int | None:
    """Where the step begins in which two arms first part."""
    if pair is None or pair.parting is None or pair.parting.step >= len(mine.steps):
        return None
    return mine.steps[pair.parting.step].position


def turn_text(mine: MeasuredTurn, other: MeasuredTurn | None) -> str:
    """The question, and what each arm did with it."""
    asked = f"question {mine.question_id} turn {mine.turn + 1}, {mine.cell_id}"
    return "\n".join([asked, *(_summary(turn) for turn in (mine, other) if turn)])


def _summary(turn: MeasuredTurn) -> str:
    counters = turn.counters
    if turn.error is not None:
        return f"{turn.arm}: prompt {counters.prompt_tokens} tokens; failed: {turn.error}"
    return (
        f"{turn.arm}: prompt {counters.prompt_tokens} tokens, {counters.cached_tokens} cached; "
        f"output {counters.output_tokens} tokens in {counters.verify_steps} verify steps"
    )


def explanation(pair: Pair, other_arm: str, tau: Tau) -> str:
    """Where two arms first part and why, in a sentence."""
    if pair.kind == "identical":
        return f"identical to {other_arm}: the same tokens, accepted in the same steps"
    if pair.kind in NOT_PAIRED:
        return f"not paired with {other_arm}: {_UNPAIRED[pair.kind]}"
    if pair.parting is None:
        return f"{pair.kind}: accepted in other steps than in {other_arm}, though all choices agree"
    parting = pair.parting
    limit = tau.limit(parting.side, parting.levels)
    if tau.knows_swings(parting.side):
        apart = f"the two choices led by {parting.swing:.3g} together (the closer one by "
        apart += f"{parting.gap:.3g})"
    else:
        apart = f"its two best logits were {parting.gap:.3g} apart"
    return (
        f"{pair.kind}: parts from {other_arm} at step {parting.step}, position {parting.position}: "
        f"{_CAUSES[parting.side]}; {apart}, "
        f"{'less' if pair.kind == 'near-tie' else 'more'} than the near-tie threshold {limit:.3g}"
    )
