"""Known faults of public engines that can be switched on as arms."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One of them.

    Attributes:
        what: what goes wrong, for people.
        issues: where it was reported.
        shows_when: what a workload must do to see it.
        needs_chain: whether it has no meaning in a tree.
    """

    what: str
    issues: tuple[str, ...]
    shows_when: str
    needs_chain: bool = False


FAULTS: dict[str, Fault] = {
    "unigram": Fault(
        what="tree keys ignore the next token, so draft KV is shared that depends on it",
        issues=("sglang#10846", "sglang#11231"),
        shows_when="a hit ends where an earlier request went on with another token",
    ),
    "no-lookahead": Fault(
        what="proposals write past their allocation into one shared page",
        issues=("vllm#16612",),
        shows_when="drafts are long, or several requests run at a time, so that proposals leave "
        "their own pages",
    ),
    "kv-reuse": Fault(
        what="draft KV of the proposal is not written again after verify",
        issues=("vllm#14649",),
        shows_when="drafts of several tokens are accepted",
        needs_chain=True,  # a tree leaves its draft KV in no order that could be kept
    ),
    "seam-guess": Fault(
        what="at a chunk seam the target's guess stands in for the next prompt token",
        issues=("sglang#26329",),
        shows_when="prompts are longer than --chunked-prefill-size",
    ),
    "seam-last": Fault(
        what="at a chunk seam the prompt's last token stands in for the next one",
        issues=("vLLM 0.32.0, docs/engines.md",),
        shows_when="prompts are longer than --chunked-prefill-size",
    ),
}
"""By the name of the arm."""


def needs_chain(arm: str) -> bool:
    """Whether an arm is a fault that has no meaning in a tree."""
    return arm in FAULTS and FAULTS[arm].needs_chain
