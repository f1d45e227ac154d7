"""Known faults of public engines that can be switched on as arms."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One of them.

    Attributes:
        what: what goes wrong, for people.
        issues: where it was reported.
    """

    what: str
    issues: tuple[str, ...]


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
    ),
    "seam-guess": Fault(
        what="at a chunk seam the target's guess stands in for the next prompt token",
        issues=("sglang#26329",),
    ),
}
"""By the name of the arm."""
