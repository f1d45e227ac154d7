"""Two arms, question by question: what is the same, and where the rest first parted.

A turn falls in the first class that fits:

    failed            it did not run in one of the arms
    other-prompts     the question asks something else: other texts, template or tokenizer
    diverged-prompt   the prompts differ (an earlier answer differed): not paired
    identical         same tokens, same accepted counts, step by step
    near-tie          noise of the size that shapes cause could turn every choice where they part
    draft-state       same tokens so far, but other drafts where the draft was sure: a fault
    target-state      the target itself chose otherwise where it was sure: a fault

The tier says how much of a turn can be compared: `identical` all of it; `matched` all tokens, in
other verify steps; `diverged` the steps in front of the first differing token.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eaglebench.records.measured import MeasuredTurn
from eaglebench.records.observation import VerifyStep
from eaglebench.stats.prefix import CommonPrefix, common_prefix, common_roots
from eaglebench.stats.tau import Side, Tau

PairClass = Literal[
    "failed",
    "other-prompts",
    "diverged-prompt",
    "identical",
    "near-tie",
    "draft-state",
    "target-state",
]

NOT_PAIRED: tuple[PairClass, ...] = ("diverged-prompt", "other-prompts", "failed")
"""Turns that have nothing in common to compare."""
FAULTS: tuple[PairClass, ...] = ("draft-state", "target-state")
"""Turns that part where the choice was clear."""
Tier = Literal["identical", "matched", "diverged", "unpaired"]
_ROOT = -1
"""As in `VerifyStep.parents`."""


@dataclass(frozen=True, slots=True)
class Parting:
    """A choice in which two arms differ: the first one that noise can't explain, or the first one.

    Attributes:
        side: who chose.
        step: verify step of the turn, from 0.
        position: of the token that was chosen, in the request, from 0.
        gap: the smaller lead of the two choices.
        swing: their sum. One arm puts its token ahead of the other's by its lead, the other arm
            puts it behind by its own, so the two logits moved against each other by at least this.
        levels: of drafts whose scores were summed up before the choice was made; 1 for a token.
    """

    side: Side
    step: int
    position: int
    gap: float
    swing: float
    levels: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One turn in two arms; `prefix` is set where the tokens part."""

    question_id: str
    turn: int
    kind: PairClass
    has_same_output: bool
    verify_steps_difference: int | None
    parting: Parting | None = None
    prefix: CommonPrefix | None = None

    @property
    def tier(self) -> Tier:
        """How far the two can be compared: all of it, all tokens, or a common beginning."""
        if self.kind in NOT_PAIRED:
            return "unpaired"
        if self.kind == "identical":
            return "identical"
        return "matched" if self.has_same_output else "diverged"


def farthest_tier(pairs: Sequence[Pair]) -> Tier:
    """The tier of the turn that can be compared least; `unpaired` without one."""
    tiers = {pair.tier for pair in pairs}
    order: tuple[Tier, ...] = ("diverged", "matched", "identical")
    return next((tier for tier in order if tier in tiers), "unpaired")


def pair_turns(
    candidate: Sequence[MeasuredTurn], baseline: Sequence[MeasuredTurn], tau: Tau
) -> list[Pair]:
    """Pair measured turns of two arms by question and turn; turns in one arm only are left out."""
    by_key = {(turn.question_id, turn.turn): turn for turn in baseline}
    pairs = []
    for turn in candidate:
        other = by_key.get((turn.question_id, turn.turn))
        if other is not None and turn.is_measured:
            pairs.append(_pair(turn, other, tau))
    return pairs


def _pair(turn: MeasuredTurn, other: MeasuredTurn, tau: Tau) -> Pair:
    same_output = turn.output_token_ids == other.output_token_ids
    steps, other_steps = turn.counters.verify_steps, other.counters.verify_steps
    parting, prefix = None, None
    kind: PairClass
    if turn.error is not None or other.error is not None:
        kind = "failed"
    elif _ask_other_things(turn, other):
        kind = "other-prompts"
    elif turn.prompt_token_ids != other.prompt_token_ids:
        kind = "diverged-prompt"
    elif same_output and turn.acceptance == other.acceptance:
        kind = "identical"
    else:
        parting = _clear_parting(turn, other, tau) or first_parting(turn, other)
        kind = _judge(parting, tau)
        prefix = None if same_output else common_prefix(turn, other)
    return Pair(
        question_id=turn.question_id,
        turn=turn.turn,
        kind=kind,
        has_same_output=same_output and kind not in NOT_PAIRED,
        verify_steps_difference=(
            None if steps is None or other_steps is None else steps - other_steps
        ),
        parting=parting,
        prefix=prefix,
    )


def _ask_other_things(turn: MeasuredTurn, other: MeasuredTurn) -> bool:
    mine, theirs = turn.question_sha256, other.question_sha256
    return mine is not None and theirs is not None and mine != theirs


def _judge(parting: Parting | None, tau: Tau) -> PairClass:
    if parting is None:
        return "draft-state"
    if tau.covers(parting.side, gap=parting.gap, swing=parting.swing, levels=parting.levels):
        return "near-tie"
    return "target-state" if parting.side == "target" else "draft-state"


def _clear_parting(turn: MeasuredTurn, other: MeasuredTurn, tau: Tau) -> Parting | None:
    """The first parting that noise can't explain; None where it can explain all of them.

    Behind a near-tie the same tokens come in other steps, so roots that both turns reached are
    looked at, whatever happened in front of them.
    """
    if turn.output_token_ids[:1] != other.output_token_ids[:1]:
        return None
    found = (_first_difference(*place) for place in common_roots(turn, other))
    return next((each for each in found if each and _judge(each, tau) != "near-tie"), None)


def first_parting(turn: MeasuredTurn, other: MeasuredTurn) -> Parting | None:
    """Walk both turns in step until a choice differs; None if none does."""
    if turn.output_token_ids[:1] != other.output_token_ids[:1]:
        leads = turn.prefill_gap or 0.0, other.prefill_gap or 0.0
        return _parting("target", 0, len(turn.prompt_token_ids), leads)
    for index, (mine, theirs) in enumerate(zip(turn.steps, other.steps, strict=False)):
        parting = _first_difference(index, mine, theirs)
        if parting is not None:
            return parting
    return None


def _first_difference(index: int, mine: VerifyStep, theirs: VerifyStep) -> Parting | None:
    """The draft's choices of a step were made before the target's, so they are looked at first.

    A draft choice behind a rejected one changed nothing that came after, so it is passed over.
    """
    if mine.parents or theirs.parents:
        return _first_tree_difference(index, mine, theirs)
    reached = min(mine.accepted, theirs.accepted) + 1  # the choice after an accepted one counts
    nodes = zip(mine.drafted_ids[:reached], theirs.drafted_ids[:reached], strict=False)
    for node, (left, right) in enumerate(nodes):
        if left != right:
            leads = mine.draft_gaps[node], theirs.draft_gaps[node]
            return _parting("draft", index, mine.position + node + 1, leads)
    if len(mine.drafted_ids) != len(theirs.drafted_ids):
        return _parting("draft", index, mine.position + 1, (float("inf"), float("inf")))
    for node, (left, right) in enumerate(
        zip(mine.target_ids[:reached], theirs.target_ids[:reached], strict=False)
    ):
        if left != right:
            leads = mine.target_gaps[node], theirs.target_gaps[node]
            return _parting("target", index, mine.position + node + 1, leads)
    return None


def _first_tree_difference(index: int, mine: VerifyStep, theirs: VerifyStep) -> Parting | None:
    """Two trees: other nodes are the draft's doing, another walk through the same is the target's.

    Each node carries the smallest lead of any choice that shaped its tree. A choice of the target
    away from the walk changed nothing that came after, so it is passed over.
    """
    if (mine.drafted_ids, mine.parents) != (theirs.drafted_ids, theirs.parents):
        leads = _smallest(mine.draft_gaps), _smallest(theirs.draft_gaps)
        levels = max(mine.num_levels, theirs.num_levels, 1)
        return _parting("draft", index, mine.position + 1, leads, levels)
    node, level = _ROOT, 1
    while mine.target_ids[_row(node)] == theirs.target_ids[_row(node)]:
        child = _child(mine, node)
        if child is None:
            return None
        node, level = child, level + 1
    leads = mine.target_gaps[_row(node)], theirs.target_gaps[_row(node)]
    return _parting("target", index, mine.position + level, leads)


def _child(step: VerifyStep, node: int) -> int | None:
    """The node that holds the target's choice after `node`; None where it was not proposed."""
    chosen = step.target_ids[_row(node)]
    for child, parent in enumerate(step.parents):
        if parent == node and step.drafted_ids[child] == chosen:
            return child
    return None


def _parting(
    side: Side, step: int, position: int, leads: tuple[float, float], levels: int = 1
) -> Parting:
    """A parting, from the leads that the two arms' choices had."""
    return Parting(side, step, position, min(leads), sum(leads), levels)


def _smallest(leads: Sequence[float]) -> float:
    return min(leads, default=float("inf"))


def _row(node: int) -> int:
    """Where the target's choice after a node stands: the root's is the first."""
    return node - _ROOT
