"""Greedy acceptance of a chain: how many proposed tokens the target agrees with.

The bonus token is counted here and nowhere else: the target's own choice after the last accepted
token is always delivered, so a verify step emits `num_accepted + 1` tokens before cutting.
"""

from collections.abc import Sequence
from dataclasses import dataclass

NUM_BONUS_TOKENS = 1


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Outcome of one verify step of one request.

    Attributes:
        num_accepted: proposed tokens accepted, the bonus not counted.
        emitted_ids: accepted tokens and the bonus token, in order; never empty.
    """

    num_accepted: int
    emitted_ids: tuple[int, ...]


def accept_greedy(drafted_ids: Sequence[int], target_ids: Sequence[int]) -> Acceptance:
    """Accept proposed tokens as long as each is the target's own choice.

    Args:
        drafted_ids: the chain d_1 .. d_K.
        target_ids: the target's choice after the root and after each d_k; K + 1 ids.

    Raises:
        ValueError: the two lengths don't belong together.
    """
    if len(target_ids) != len(drafted_ids) + NUM_BONUS_TOKENS:
        message = f"{len(drafted_ids)} proposed tokens need {len(drafted_ids) + NUM_BONUS_TOKENS} "
        raise ValueError(message + f"target choices, got {len(target_ids)}")
    num_accepted = 0
    for drafted, chosen in zip(drafted_ids, target_ids, strict=False):
        if drafted != chosen:
            break
        num_accepted += 1
    return Acceptance(num_accepted, tuple(target_ids[: num_accepted + NUM_BONUS_TOKENS]))
