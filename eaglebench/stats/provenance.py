"""Who wrote the draft KV that a step read, worked out from what a run stores.

Recorded are prompts and outputs of all turns in their order, cached tokens, evictions, preemptions,
the steps, the knobs, and where chunks ended. Inferred from them is who wrote a slot: the tree keeps
the first copy of a page, so the writer is the earliest request of the same cell, arm and pass that
shares the page's key. A key of token pairs names slot p by tokens 0 .. p + 1, one of single tokens
by tokens 0 .. p; the pair is right, because draft KV of slot p is made from token p and the next.
Where requests ran side by side, or pages were evicted, several may have been first: all are named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Literal

from eaglebench.records.knobs import base_arm
from eaglebench.records.measured import MeasuredTurn, TurnKey

Origin = Literal["cached", "prefill", "verify"]
Suspicion = Literal["next-token", "other-tokens", "seam", "kept-proposal"]
_AT_SEAMS = ("seam-guess", "seam-last")
"""Arms that plant a wrong token there."""
_OwnFault = tuple[Suspicion, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One slot of draft KV that a draft read.

    Attributes:
        position: of its token.
        origin: the prefix cache, the request's own prefill, or its own verify steps.
        writers: for a cached one the turns of which one wrote it; None where that is not recorded.
        suspicion: why its content may not be what a cold pass makes; None without one.
        then: the next token it was made with; None where that is not recorded or not in question.
        now: the next token here, where that is in question.
    """

    position: int
    origin: Origin
    writers: tuple[MeasuredTurn, ...] | None = ()
    suspicion: Suspicion | None = None
    then: int | None = None
    now: int | None = None

    @property
    def label(self) -> tuple[object, ...]:
        """What neighbours have in common that are told together."""
        writers = None if self.writers is None else tuple(turn.key for turn in self.writers)
        return self.origin, writers, self.suspicion, self.then, self.now


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Where the prefix from the cache ended.

    Attributes:
        cached: tokens it gave (recorded).
        shared: most leading tokens in common with an earlier request.
        allowed: most slots that keys of token pairs could give, in whole pages.
    """

    cached: int
    shared: int
    allowed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the draft of a step read.

    Attributes:
        turn, step, root: whose, which one (from 0), and the position of its root.
        hit: None where cached tokens were not recorded.
        slots: the slots in front of the root.
        past: slots of its own proposal that lie past what was reserved and were read again.
        reserved: one past the last slot reserved when it drafted; None where it can't be inferred.
        seams: last slots of chunks in the middle of its own prefill; None where that is not known.
        unknown: what is not recorded, and why.
    """

    turn: MeasuredTurn
    step: int
    root: int
    hit: Hit | None
    slots: tuple[Slot, ...]
    past: tuple[int, ...]
    reserved: int | None
    seams: tuple[int, ...] | None
    unknown: tuple[str, ...]

    @property
    def stretches(self) -> list[tuple[Slot, Slot]]:
        """First and last of neighbouring slots about which the same is to be told."""
        found = [list(same) for _, same in groupby(self.slots, key=lambda slot: slot.label)]
        return [(same[0], same[-1]) for same in found]

    @property
    def suspects(self) -> list[Slot]:
        """Slots whose content may not be what a cold pass makes."""
        return [slot for slot in self.slots if slot.suspicion is not None]


class History:
    """A turn and the turns of its cell, arm and pass that can have left something for it."""

    def __init__(self, turns: Sequence[MeasuredTurn], turn: MeasuredTurn) -> None:
        self.turn = turn
        self.tokens = _known(turn)
        place = (turn.cell_id, turn.arm, turn.pass_index)
        self._faults: dict[TurnKey, dict[int, _OwnFault]] = {}
        same = [t for t in turns if (t.cell_id, t.arm, t.pass_index) == place]
        same.sort(key=lambda each: each.block)  # stable: in a block, as they ended
        self.is_sequential = turn.knobs.parallel == 1
        if self.is_sequential:
            same = same[: next(n for n, each in enumerate(same) if each.key == turn.key)]
        elif turn.error is None or turn.counters.target_forwards:
            same = [t for t in same if t.block <= turn.block and t.key != turn.key]
        self.earlier = [each for each in same if each.error is None]

    @cached_property
    def _shared(self) -> list[int]:
        """Leading tokens in common with each earlier turn."""
        return [_common(self.tokens, _known(each)) for each in self.earlier]

    @cached_property
    def has_lost_pages(self) -> bool:
        """Whether pages went from the tree, so that later copies may have taken their place."""
        return any(t.counters.evictions or t.counters.preemptions for t in self.earlier)

    @cached_property
    def hit(self) -> Hit | None:
        """Where the turn's prefix from the cache ended."""
        cached = self.turn.counters.cached_tokens
        if cached is None:
            return None
        prompt, page = len(self.turn.prompt_token_ids), self.turn.knobs.page_size
        shared = max((min(count, prompt) for count in self._shared), default=0)
        by_pairs = max((count - 1 for count in self._shared), default=0)
        return Hit(
            cached=cached, shared=shared, allowed=max(0, min(by_pairs, prompt - 1)) // page * page
        )

    @cached_property
    def has_single_keys(self) -> bool:
        """Whether the tree's keys ignore the next token: the arm says so, or some hit shows it."""
        if base_arm(self.turn.arm) == "unigram":
            return True
        tree = _Prefixes()
        asked = [*self.earlier, self.turn]
        if not self.is_sequential:
            for each in asked:
                tree.add(_known(each))
        for each in asked:
            cached = each.counters.cached_tokens or 0
            if cached and cached >= tree.shared(_known(each), 1 if self.is_sequential else 2):
                return True
            if self.is_sequential:
                tree.add(_known(each))
        return False

    def writers(self, position: int) -> tuple[MeasuredTurn, ...]:
        """The turns of which one wrote a cached slot; empty where none had these tokens."""
        page = self.turn.knobs.page_size
        end = (position // page + 1) * page
        needed = end if self.has_single_keys else end + 1
        found = [
            each
            for each, shared in zip(self.earlier, self._shared, strict=True)
            if shared >= needed and len(_known(each)) > end
        ]
        if self.is_sequential and not self.has_lost_pages:
            return tuple(found[:1])
        return tuple(found)

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """What is not recorded about the cached slots, and why."""
        counters, why = self.turn.counters, []
        if counters.cached_tokens is None:
            why.append("how many tokens came from the cache is not recorded")
        if counters.preemptions:
            why.append(
                f"this request was preempted {counters.preemptions} times; which slots it then "
                "took from the cache is not recorded"
            )
        if not self.is_sequential:
            why.append(
                f"requests ran side by side (--parallel {self.turn.knobs.parallel}); which of "
                "them wrote a shared page first is not recorded"
            )
        if self.has_lost_pages:
            why.append(
                "pages were evicted or requests preempted before; which copy of a shared page "
                "stood is not recorded"
            )
        return tuple(why)

    def reading(self, step: int, reached: int) -> Reading:
        """What the draft of a step read to propose the token at position `reached`."""
        root = self.turn.steps[step].position
        cached = self.hit.cached if self.hit is not None else None
        reserved, seams = reserved_end(self.turn, step), seams_of(self.turn)
        return Reading(
            turn=self.turn,
            step=step,
            root=root,
            hit=self.hit,
            slots=tuple(self._slot(position, cached) for position in range(root)),
            past=_clashing(self.turn, reserved, _proposal(self.turn, step, reached)),
            reserved=reserved,
            seams=None if seams is None else tuple(slot for slot in seams if slot < root),
            unknown=self.unknown,
        )

    def _slot(self, position: int, cached: int | None) -> Slot:
        if cached is not None and position < cached:
            return self._cached_slot(position)
        prompt = len(self.turn.prompt_token_ids)
        own = self._own_fault(self.turn, position)
        if cached is None:
            return Slot(position=position, origin="prefill", writers=None)
        return Slot(
            position=position,
            origin="prefill" if position < prompt else "verify",
            suspicion=own[0] if own else None,
            then=own[1] if own else None,
            now=self._next(position) if own and own[0] == "seam" else None,
        )

    def _cached_slot(self, position: int) -> Slot:
        if self.turn.counters.preemptions:
            return Slot(position=position, origin="cached", writers=None)
        found, now = self.writers(position), self._next(position)
        if not found:
            return Slot(position=position, origin="cached", suspicion="other-tokens")
        others = {_known(each)[position + 1] for each in found} - {now}
        suspicion: Suspicion | None = "next-token" if others else None
        then = others.pop() if len(others) == 1 and len(found) == 1 else None
        inherited = [self._own_fault(each, position) for each in found]
        if suspicion is None and inherited[0] is not None and None not in inherited:
            suspicion, then = inherited[0]
        asks = suspicion in {"next-token", "seam"}
        return Slot(
            position=position,
            origin="cached",
            writers=found,
            suspicion=suspicion,
            then=then,
            now=now if asks else None,
        )

    def _own_fault(self, turn: MeasuredTurn, position: int) -> _OwnFault | None:
        if turn.key not in self._faults:
            self._faults[turn.key] = _own_faults(turn)
        return self._faults[turn.key].get(position)

    def _next(self, position: int) -> int:
        return self.tokens[position + 1]


class _Prefixes:
    """Token sequences as a tree that counts how many begin alike."""

    def __init__(self) -> None:
        self._root: dict[int, list[object]] = {}

    def add(self, tokens: Sequence[int]) -> None:
        """Count a sequence."""
        level = self._root
        for token in tokens:
            entry = level.setdefault(token, [0, {}])
            entry[0] += 1  # type: ignore[operator]  # a count and the next level
            level = entry[1]  # type: ignore[assignment]

    def shared(self, tokens: Sequence[int], least: int) -> int:
        """Leading tokens that at least so many sequences begin with."""
        level = self._root
        for number, token in enumerate(tokens):
            entry = level.get(token)
            if entry is None or entry[0] < least:  # type: ignore[operator]
                return number
            level = entry[1]  # type: ignore[assignment]
        return len(tokens)


def seams_of(turn: MeasuredTurn) -> dict[int, int | None] | None:
    """Last slots of chunks in the middle of a prefill, and the token each was made with.

    Inferred where they were not recorded and nothing else took part of the budget, the token is
    None then; None where that can't be inferred either.
    """
    if turn.seam_slots is not None and turn.seam_successors is not None:
        return dict(zip(turn.seam_slots, turn.seam_successors, strict=True))
    chunk, cached = turn.knobs.chunked_prefill_size, turn.counters.cached_tokens
    if chunk is None:
        return {}
    if cached is None or turn.knobs.parallel > 1 or turn.counters.preemptions:
        return None
    last = len(turn.prompt_token_ids) - 1
    return dict.fromkeys(range(cached + chunk - 1, last, chunk))


def _own_faults(turn: MeasuredTurn) -> dict[int, _OwnFault]:
    """Slots that a turn wrote itself and may have written wrong, and the token they were made with."""
    found: dict[int, _OwnFault] = {}
    known, arm = _known(turn), base_arm(turn.arm)
    for slot, made_with in (seams_of(turn) or {}).items():
        if arm in _AT_SEAMS if made_with is None else made_with != known[slot + 1]:
            found[slot] = "seam", made_with
    if arm == "kv-reuse":
        for step in turn.steps:
            kept = min(max(0, len(step.drafted_ids) - 1), step.accepted, step.emitted - 1)
            found |= dict.fromkeys(
                range(step.position, step.position + kept), ("kept-proposal", None)
            )
    return found


def reserved_end(turn: MeasuredTurn, num_steps: int) -> int | None:
    """One past the last slot that a request of the arm `no-lookahead` held after so many steps.

    As in `kv/preallocation.py`, with no look-ahead; None where it can't be inferred.
    """
    counters, knobs = turn.counters, turn.knobs
    is_asked = base_arm(turn.arm) == "no-lookahead" and not counters.preemptions
    if not is_asked or counters.cached_tokens is None:
        return None
    page = knobs.page_size
    held = counters.cached_tokens // page
    aim = -(-knobs.preallocate_tokens // page) if knobs.preallocation != "none" else 0
    seams = seams_of(turn)
    if seams is None:
        return None
    ends = [slot + 1 for slot in seams] + [len(turn.prompt_token_ids)]
    ends += [each.position + 1 + len(each.drafted_ids) for each in turn.steps[:num_steps]]
    for end in ends:
        required = -(-end // page) - held
        held += required + aim if required > 0 else 0
    return held * page


def _proposal(turn: MeasuredTurn, step: int, reached: int) -> range:
    """Slots of its own that a proposal read to come to the token at position `reached`.

    Of a tree all that it wrote: topk at every level but the last, whatever node is asked about.
    """
    root, topk = turn.steps[step].position, turn.knobs.eagle_topk
    if topk == 1:
        return range(root, max(root, reached - 1))
    return range(root, root + max(0, turn.steps[step].num_levels - 1) * topk)


def _clashing(turn: MeasuredTurn, reserved: int | None, read: range) -> tuple[int, ...]:
    """Slots past what was reserved, where another slot or request may write to the same place."""
    past = tuple(slot for slot in read if reserved is not None and slot >= reserved)
    alone = turn.knobs.parallel == 1 and len(past) <= turn.knobs.page_size
    return () if alone else past


def _known(turn: MeasuredTurn) -> tuple[int, ...]:
    return (*turn.prompt_token_ids, *turn.output_token_ids)


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    pairs = zip(left, right, strict=False)
    differs = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
    return min(len(left), len(right)) if differs is None else differs
