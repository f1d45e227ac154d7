"""What the draft of a step read, as a table and in sentences: slots, writers, next tokens, borders."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from eaglebench.records.faults import FAULTS
from eaglebench.report.phrases import NO_VALUE
from eaglebench.report.table import Column, Table, make_table
from eaglebench.stats.provenance import Reading, Slot

TokenText = Callable[[Sequence[int]], str]
SHOWN_STRETCHES = 24
SHOWN_SEAMS = 8
SHOWN_SLOTS = 3
_ORIGINS = {"prefill": "own prefill", "verify": "own verify steps"}
_OF_NEXT = {"next-token", "seam"}
_KEY = (
    "Draft KV of a slot is made from its token and the next one, and a key that holds the token "
    "alone shares it with requests that go on otherwise"
)
_OTHER_TOKENS = "the cache gave what no earlier request of this arm wrote behind these tokens"
_SEAMS = {
    "seam-guess": "the target's guess instead of the prompt's next token",
    "seam-last": "the last token of the prompt instead of the next one",
}
_SEAM = "a chunk of the prompt ended there, and the draft KV was made with"
_KEPT = (
    "they keep the draft KV that the proposal left there, made from the head's own states; it was "
    "not written again from the target's after verify"
)
_PAST = (
    "the proposal read and wrote past the slots that were reserved for it, in one page that all "
    "such slots share"
)


def reading_table(reading: Reading, label: str, text: TokenText) -> Table:
    """Which slots the draft of the step read, who wrote them, and with which next token."""
    nexts = (
        Column("next token then", lambda each: _next(each[0], each[0].then, text)),
        Column("now", lambda each: _next(each[0], each[0].now, text)),
    ) * any(slot.suspicion in _OF_NEXT for slot in reading.slots)
    columns = (
        Column("slots", lambda each: _slots(each[0].position, each[1].position)),
        Column("draft KV written by", lambda each: _writer(each[0], "cached, ")),
        *nexts,
        Column("remark", lambda each: _border(reading, *each)),
    )
    stretches = reading.stretches
    hidden = len(stretches) - SHOWN_STRETCHES
    table = make_table(
        columns,
        stretches[:SHOWN_STRETCHES],
        title=f"What the draft of step {reading.step} read ({label}, root {reading.root})",
    )
    remarks = [f"and {hidden} more stretches"] if hidden > 0 else []
    return replace(table, remarks=(*remarks, *borders_text(reading)))


def borders_text(reading: Reading) -> list[str]:
    """Where hit, pages, chunks, window and reserved slots ended, and what is not recorded."""
    knobs, hit, lines = reading.turn.knobs, reading.hit, []
    if hit is not None:
        lines.append(
            f"hit: {hit.cached} tokens cached (recorded); {hit.shared} leading tokens shared with "
            f"an earlier request, of which keys of token pairs in pages of {knobs.page_size} "
            f"allow {hit.allowed} (inferred)"
        )
        if hit.cached < hit.allowed:
            lines[-1] += "; fewer came, because pages were evicted or lay outside a window"
    if reading.seams:
        what = "recorded" if reading.turn.seam_slots is not None else "inferred"
        lines.append(f"chunks of its own prefill ended at {_list(reading.seams)} ({what})")
    window = reading.turn.window
    if window is not None:
        first = max(0, reading.root - window + 1)
        lines.append(f"window layers of the target saw positions {first} to {reading.root}")
    if reading.reserved is not None:
        lines.append(f"slots were reserved up to {reading.reserved - 1} (inferred)")
    return lines + [f"not recorded: {why}" for why in reading.unknown]


def causes(reading: Reading, side: str, text: TokenText) -> list[str]:
    """The mechanism, in sentences; what was ruled out where there is none."""
    by_kind: dict[str, list[Slot]] = {}
    for slot in reading.suspects:
        by_kind.setdefault(str(slot.suspicion), []).append(slot)
    if side == "target":
        by_kind = {kind: slots for kind, slots in by_kind.items() if kind == "other-tokens"}
    last = reading.turn.prompt_token_ids[-1:]
    lines = [_cause(kind, slots, text, last) for kind, slots in by_kind.items()]
    if reading.past and side == "draft":
        where = f"slots {_slots(reading.past[0], reading.past[-1])}"
        lines.append(f"past the reservation: {where}: {_PAST} {_as_arm('no-lookahead')}")
    return lines


def no_cause(readings: Sequence[Reading]) -> str:
    """What can be said where nothing that was looked for explains a parting."""
    if any(reading.unknown for reading in readings):
        return "cause: not recorded (see above)"
    return (
        "cause: none of those looked for: every cached slot was written behind the same tokens and "
        "with the same next one, no chunk seam has another next token, and no slot lies past what "
        "was reserved; what wrote the slots themselves is left"
    )


def _cause(kind: str, slots: Sequence[Slot], text: TokenText, last: Sequence[int]) -> str:
    first = slots[0]
    where = (
        f"slot {first.position}"
        if len(slots) == 1
        else f"{len(slots)} slots, the first {first.position}"
    )
    if kind == "next-token":
        told = [_stale(slot, text) for slot in slots[:SHOWN_SLOTS]]
        more = len(slots) - len(told)
        told += [f"{more} more"] if more else []
        return f"cache key: {'; '.join(told)}. {_KEY} {_as_arm('unigram')}"
    if kind == "other-tokens":
        return f"cache: {where}: {_OTHER_TOKENS}"
    if kind == "seam":
        guess = "a guess that is not recorded" if first.then is None else text([first.then])
        now = text([first.now]) if first.now is not None else NO_VALUE
        arm = "seam-last" if all([slot.then] == list(last) for slot in slots) else "seam-guess"
        return f"chunk seam: {where}: {_SEAM} {_SEAMS[arm]}: {guess} for {now} {_as_arm(arm)}"
    return f"kept proposal: {where}: {_KEPT} {_as_arm('kv-reuse')}"


def _stale(slot: Slot, text: TokenText) -> str:
    """Who wrote a slot with which next token, and which one follows here."""
    then = "another next token" if slot.then is None else f"next token {text([slot.then])}"
    now = NO_VALUE if slot.now is None else text([slot.now])
    return f"slot {slot.position} was written by {_writer(slot)} with {then}, here {now} follows"


def _as_arm(name: str) -> str:
    return f"(the mechanism of {name}; {', '.join(FAULTS[name].issues)})"


def _list(numbers: Sequence[int]) -> str:
    more = [f"{len(numbers) - SHOWN_SEAMS} more"] if len(numbers) > SHOWN_SEAMS else []
    return ", ".join([*map(str, numbers[:SHOWN_SEAMS]), *more])


def _slots(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _writer(slot: Slot, lead: str = "") -> str:
    if slot.writers is None:
        return "not recorded"
    if slot.origin != "cached":
        return _ORIGINS[slot.origin]
    names = [f"question {turn.question_id} turn {turn.turn + 1}" for turn in slot.writers]
    if not names:
        return f"{lead}nobody with these tokens"
    if len(names) == 1:
        return f"{lead}{names[0]}"
    more = f" or {len(names) - 2} more" if len(names) > 2 else ""
    return f"{lead}one of {', '.join(names[:2])}{more}"


def _next(slot: Slot, token: int | None, text: TokenText) -> str:
    if slot.suspicion not in _OF_NEXT:
        return ""
    return "not recorded" if token is None else text([token])


def _border(reading: Reading, first: Slot, last: Slot) -> str:
    """What ends with a stretch."""
    page, hit, found = reading.turn.knobs.page_size, reading.hit, []
    if first.suspicion == "kept-proposal":
        found.append("kept from the proposal")
    if first.suspicion == "seam":
        found.append("chunk seam")
    if hit is not None and hit.cached and last.position == hit.cached - 1:
        found.append("end of the hit")
        if page > 1:
            found.append("page end")
    return ", ".join(found)
