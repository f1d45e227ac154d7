"""Which position of a row made a NaN or infinite number, and whose forward it was.

A turn that meets one has failed: nothing that was chosen from such numbers is an answer. What was
committed before is sound and stays; nothing from the position on gets into the tree. Attention may
carry a number that is not finite from a masked key to tokens in front of it (0 times NaN is NaN), so
all that the row computed together is named, first and last.
"""

from collections.abc import Sequence
from math import isfinite

from eaglebench.engine.batch import row_positions
from eaglebench.engine.plan import Row
from eaglebench.spec.drafter import ExtendRow
from eaglebench.spec.proposal import Proposal

_LAST = 1
"""The first drafted token comes from the logits of the last slot written before it."""


def target_failure(row: Row, gaps: Sequence[float], states: Sequence[bool]) -> str | None:
    """What failed in the target's part of a row; None where all is finite.

    Args:
        row: the row.
        gaps: of the row's logits, which belong to its last tokens; NaN is the flag.
        states: whether the last hidden state of each of the row's tokens is finite.
    """
    first_with_logits = len(states) - len(gaps)
    wrong = [place for place, is_finite in enumerate(states) if not is_finite]
    wrong += [first_with_logits + place for place, gap in enumerate(gaps) if not isfinite(gap)]
    if not wrong:
        return None
    positions = row_positions(row)[wrong]
    return _message("target", int(positions.min()), int(positions.max()))


def head_failure(extend: ExtendRow, num_sound: int, proposal: Proposal) -> str | None:
    """What failed in the head's part of a row; None where all is finite.

    Args:
        extend: the slots that were written.
        num_sound: how many of them, from the first on, have a finite state.
        proposal: what was proposed behind them; a gap of NaN is the flag.
    """
    if num_sound < extend.end - extend.start:
        return _message("head", extend.start + num_sound, extend.end - _LAST)
    wrong = [node for node, gap in enumerate(proposal.gaps) if not isfinite(gap)]
    if not wrong:
        return None
    parents = proposal.depths()[wrong]  # depth of the node each one follows: the root stands first
    first_slot = extend.end - _LAST
    return _message("head", first_slot + int(parents.min()), first_slot + int(parents.max()))


def _message(whose: str, first: int, last: int) -> str:
    where = f"position {first}" if first == last else f"positions {first} to {last}"
    return f"the {whose}'s numbers at {where} are NaN or infinite"
