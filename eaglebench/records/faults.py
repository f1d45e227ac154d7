"""Known faults of public engines that can be switched on as arms."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One of them.

    Attributes:
        what: what goes wrong, for people.
        issues: where it was reported.
        needs_chain: whether it has no meaning in a tree.
    """

    what: str
    issues: tuple[str, ...]
    needs_chain: bool = False


FAULTS: dict[str, Fault] = {
    "unigram": Fault(
        what="tree keys ignore the next token, so draft KV is shared that depends on it",
        issues=("sglang#10846", "sglang#11231"),
    ),
    "no-lookahead": Fault(
        what="proposals write past their allocation into one shared page",
        issues=("vllm#16612",),
    ),
    "kv-reuse": Fault(
        what="draft KV of the proposal is not written again after verify",
        issues=("vllm#14649",),
        needs_chain=True,  # a tree leaves its draft KV in no order that could be kept
    ),
    "seam-guess": Fault(
        what="at a chunk seam the target's guess stands in for the next prompt token",
        issues=("sglang#26329",),
    ),
}
"""By the name of the arm."""


def needs_chain(arm: str) -> bool:
    """Whether an arm is a fault that has no meaning in a tree."""
    return arm in FAULTS and FAULTS[arm].needs_chain
