"""One turn beside its twin: its steps as a table, where they part, and what the draft there read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from eaglebench.records.measured import MeasuredTurn
from eaglebench.records.observation import VerifyStep
from eaglebench.report.reading_table import TokenText, causes, no_cause
from eaglebench.report.table import Column, Table, make_table
from eaglebench.stats.pairing import NOT_PAIRED, Pair
from eaglebench.stats.provenance import Reading
from eaglebench.stats.tau import Side, Tau

ACCEPTED = "+"
PARTED = "> "
LEGEND = (
    f"root = position of the last known token; the first drafted token stands behind it; "
    f"'x'{ACCEPTED} = drafted and accepted, 'x' = drafted; | = the target's own token behind the "
    f"accepted ones; acc. = accepted/drafted; {PARTED.strip()} = where the two first part"
)
_CAUSES = {
    "draft": "the head proposed another token from the same beginning",
    "target": "the target itself chose another token",
}
_UNPAIRED = {
    "failed": "the turn failed in one of them",
    "other-prompts": "the question asks something else there",
    "diverged-prompt": "an earlier answer differed, so the prompts do",
}


class PartedStep(NamedTuple):
    """A step, of both turns, in which they part; or, accepted alike, draft differently.

    Whose choice, number of the step in the turn, position of its root, that of the other token.
    """

    side: Side
    step: int
    root: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedTurn:
    """A turn beside its twin: the same turn in another arm, or in another run.

    Attributes:
        mine: the turn.
        other: its twin, where there is one.
        labels: what the two sides are called.
        pair: how the two relate; None where one of them is not measured.
        tau: the near-tie thresholds that hold for both.
        parted: the step to look at; None where they don't part in a verify step that both made.
        readings: what the drafts of the two read where they part; empty where no step is to blame.
        model: name of the target.
    """

    mine: MeasuredTurn
    other: MeasuredTurn | None
    labels: tuple[str, str]
    pair: Pair | None
    tau: Tau
    parted: PartedStep | None = None
    readings: tuple[Reading, ...] = ()
    model: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether one of the two was answered without a failure."""
        return any(turn is not None and turn.error is None for turn in (self.mine, self.other))

    @property
    def told_readings(self) -> list[tuple[str, Reading]]:
        """The turn's own reading, and its twin's where that met the cache or a suspect."""
        return [
            (label, each)
            for place, (label, each) in enumerate(zip(self.labels, self.readings, strict=False))
            if place == 0 or each.past or each.suspects or (each.hit and each.hit.cached)
        ]


def steps_table(found: ExplainedTurn, text: TokenText) -> Table:
    """The steps of a turn, beside those of its twin that start at the same position."""
    marked = marked_root(found)
    columns = [
        Column(
            "root", lambda root: marked if marked == f"{PARTED}{root}" else str(root), is_right=True
        ),
    ]
    turns = [turn for turn in (found.mine, found.other) if turn is not None]
    sides = [
        {step.position: (number, step) for number, step in enumerate(turn.steps)} for turn in turns
    ]
    for label, steps in zip(found.labels, sides, strict=False):
        columns += [
            Column("step", partial(_number, steps), is_right=True),
            Column(label, partial(_tokens, steps, text)),
            Column("acc.", partial(_accepted, steps), is_right=True),
        ]
    roots = sorted({position for steps in sides for position in steps})
    return make_table(columns, roots, remarks=(LEGEND,) if roots else ())


def marked_root(found: ExplainedTurn) -> str | None:
    """The first cell of the row of the step in which the two part."""
    return f"{PARTED}{found.parted.root}" if found.parted is not None else None


_Steps = Mapping[int, tuple[int, VerifyStep]]


def _number(steps: _Steps, root: int) -> str:
    return str(steps[root][0]) if root in steps else ""


def _accepted(steps: _Steps, root: int) -> str:
    return f"{steps[root][1].accepted}/{len(steps[root][1].drafted_ids)}" if root in steps else ""


def _tokens(steps: _Steps, text: TokenText, root: int) -> str:
    """Drafted tokens, a tree as one, and the target's choice behind the accepted ones."""
    if root not in steps:
        return ""
    step = steps[root][1]
    accepted = step.accepted_nodes
    behind = (accepted[-1] if accepted else -1) + 1
    choice = text(step.target_ids[behind : behind + 1])
    nodes = [
        text([token]) + ACCEPTED * (node in accepted) for node, token in enumerate(step.drafted_ids)
    ]
    if not step.parents:
        return f"{' '.join(nodes)} | {choice}"
    return "\n".join([*_tree(nodes, step.parents), f"| {choice}"])


def _tree(
    nodes: Sequence[str], parents: Sequence[int], parent: int = -1, depth: int = 0
) -> list[str]:
    """Every node on a line below its parent, one step further in."""
    lines = []
    for node, above in enumerate(parents):
        if above == parent:
            lines.append(f"{'  ' * depth}{'`-' if depth else ''}{nodes[node]}")
            lines += _tree(nodes, parents, node, depth + 1)
    return lines


def turn_text(found: ExplainedTurn) -> str:
    """The question, and what each side did with it."""
    mine = found.mine
    asked = f"question {mine.question_id} turn {mine.turn + 1}, {mine.cell_id}"
    sides = zip(found.labels, (mine, found.other), strict=True)
    return "\n".join([asked, *(_summary(label, turn) for label, turn in sides if turn)])


def _summary(label: str, turn: MeasuredTurn) -> str:
    counters = turn.counters
    if turn.error is not None:
        return f"{label}: prompt {counters.prompt_tokens} tokens; failed: {turn.error}"
    return (
        f"{label}: prompt {counters.prompt_tokens} tokens, {counters.cached_tokens} cached; "
        f"output {counters.output_tokens} tokens in {counters.verify_steps} verify steps"
    )


def explanation(found: ExplainedTurn) -> str:
    """Where the two first part and how, in a sentence."""
    pair, other, tau = found.pair, found.labels[1], found.tau
    if pair is None:
        return ""
    if pair.kind == "identical":
        same = f"identical to {other}: the same tokens, accepted in the same steps"
        if found.parted is None:
            return same
        where = f"step {found.parted.step} (root {found.parted.root})"
        return (
            f"{same}; but the head proposed another token, which was rejected in both, at {where}, "
            f"position {found.parted.position}"
        )
    if pair.kind in NOT_PAIRED:
        return f"not paired with {other}: {_UNPAIRED[pair.kind]}"
    if pair.parting is None:
        return f"{pair.kind}: accepted in other steps than in {other}, though all choices agree"
    parting = pair.parting
    limit = tau.limit(parting.side, parting.levels)
    if tau.knows_swings(parting.side):
        apart = f"the two choices led by {parting.swing:.3g} together (the closer one by "
        apart += f"{parting.gap:.3g})"
    else:
        apart = f"its two best logits were {parting.gap:.3g} apart"
    root = f" (root {found.parted.root})" if found.parted is not None else ""
    return (
        f"{pair.kind}: parts from {other} at step {parting.step}{root}, position "
        f"{parting.position}: {_CAUSES[parting.side]}; {apart}, "
        f"{'less' if pair.kind == 'near-tie' else 'more'} than the near-tie threshold {limit:.3g}"
    )


def cause_lines(found: ExplainedTurn, text: TokenText) -> list[str]:
    """Why the two part: the mechanism on either side, or what was ruled out."""
    if found.parted is None:
        return []
    side = found.parted.side
    lines = [
        f"cause on the side of {label}: {line}"
        for label, reading in zip(found.labels, found.readings, strict=False)
        for line in causes(reading, side, text)
    ]
    return lines or [no_cause(found.readings)]
