"""Acceptance: the path of proposed tokens that the target itself has chosen, greedily or by a draw.

The bonus token is counted here and nowhere else: the target's own choice after the last accepted
token is always delivered, so a verify step emits `num_accepted + 1` tokens before cutting.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eaglebench.spec.proposal import ROOT, Proposal, verify_row

NUM_BONUS_TOKENS = 1


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Outcome of one verify step of one request.

    Attributes:
        path: accepted nodes from the root on, the root and the bonus token not counted.
        emitted_ids: accepted tokens and the bonus token, in order; never empty.
    """

    path: tuple[int, ...]
    emitted_ids: tuple[int, ...]

    @property
    def num_accepted(self) -> int:
        """Proposed tokens accepted, the bonus not counted."""
        return len(self.path)


def accept_chosen(proposal: Proposal, target_ids: Sequence[int]) -> Acceptance:
    """Walk from the root to the child that is the target's own choice, as long as there is one.

    Args:
        proposal: the nodes.
        target_ids: the target's choice after the root and after every node; one more than nodes.

    Raises:
        ValueError: the two lengths don't belong together.
    """
    drafted = proposal.token_ids
    if len(target_ids) != len(drafted) + NUM_BONUS_TOKENS:
        message = f"{len(drafted)} proposed tokens need {len(drafted) + NUM_BONUS_TOKENS} "
        raise ValueError(message + f"target choices, got {len(target_ids)}")
    path: list[int] = []
    node = ROOT
    while (accepted := _child(proposal, node, target_ids[verify_row(node)])) is not None:
        path.append(accepted)
        node = accepted
    emitted = [*(drafted[each] for each in path), target_ids[verify_row(node)]]
    return Acceptance(tuple(path), tuple(emitted))


def _child(proposal: Proposal, node: int, token_id: int) -> int | None:
    """The first child of a node that holds this token."""
    if proposal.is_chain:
        following = node + 1
        is_there = following < len(proposal.token_ids)
        return following if is_there and proposal.token_ids[following] == token_id else None
    children = proposal.children(node)
    return next((child for child in children if proposal.token_ids[child] == token_id), None)
