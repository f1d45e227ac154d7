"""What could not show here: a fault or an axis that the questions never reached.

Equal counts say something only where something could have differed. `None` is "it was reached, or
nobody can tell from the counts".
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from eaglebench.records.counters import Counters
from eaglebench.records.knobs import base_arm
from eaglebench.records.measured import MeasuredTurn

NO_HIT = "nothing was found in the cache"
ONE_CHUNK = "no prompt was computed in several chunks"
NO_ACCEPTED = "no draft was accepted"
NO_DRAFT = "nothing was drafted"
NO_EVICTION = "nothing was evicted"


def why_idle(arm: str, turns: Sequence[MeasuredTurn], counts: Counters) -> str | None:
    """Why a cache or a planted fault could change nothing in these turns, in a few words."""
    check = _ARMS.get(base_arm(arm))
    return check(turns, counts) if check else None


def why_axes_idle(
    arm: str,
    axes: Sequence[str],
    mine: tuple[Sequence[MeasuredTurn], Counters],
    theirs: tuple[Sequence[MeasuredTurn], Counters],
) -> str | None:
    """Why two cells that differ in these knobs did the same work; None if one knob was reached."""
    reasons = []
    for axis in axes:
        check = _AXES.get(axis)
        if axis == "page_size":
            check = _hits if base_arm(arm) == "radix" else None
        both = [check(*side) for side in (mine, theirs)] if check else [None]
        if None in both:
            return None
        reasons += [reason for reason in both if reason is not None]
    return ", ".join(dict.fromkeys(reasons)) or None


def _hits(_turns: Sequence[MeasuredTurn], counts: Counters) -> str | None:
    return NO_HIT if counts.cached_tokens == 0 else None


def _chunks(turns: Sequence[MeasuredTurn], _counts: Counters) -> str | None:
    return None if any(map(_is_chunked, turns)) else ONE_CHUNK


def _is_chunked(turn: MeasuredTurn) -> bool:
    """Whether its prompt did not fit one step; where nobody counted it may not have."""
    chunk, computed = turn.knobs.chunked_prefill_size, turn.counters.prefill_tokens_computed
    return chunk is not None and (computed is None or computed > chunk)


def _accepted(_turns: Sequence[MeasuredTurn], counts: Counters) -> str | None:
    return NO_ACCEPTED if counts.accepted == 0 else None


def _drafted(_turns: Sequence[MeasuredTurn], counts: Counters) -> str | None:
    return NO_DRAFT if counts.drafted == 0 else None


def _evicted(_turns: Sequence[MeasuredTurn], counts: Counters) -> str | None:
    return NO_EVICTION if counts.evictions == 0 else None


_Check = Callable[[Sequence[MeasuredTurn], Counters], str | None]
_ARMS: Mapping[str, _Check] = {
    "radix": _hits,
    "unigram": _hits,
    "seam-guess": _chunks,
    "seam-last": _chunks,
    "kv-reuse": _accepted,
    "no-lookahead": _drafted,
}
_AXES: Mapping[str, _Check] = {"chunked_prefill_size": _chunks, "eviction_policy": _evicted}


def first_pass(turns: Iterable[MeasuredTurn], cell_id: str, arm: str) -> list[MeasuredTurn]:
    """Turns of one cell and arm that counts are taken from."""
    place = (cell_id, arm, 0)
    return [turn for turn in turns if (turn.cell_id, turn.arm, turn.pass_index) == place]
