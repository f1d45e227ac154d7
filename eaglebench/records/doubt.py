"""Why a result can't be trusted, as a value.

failed        turns that could not run, or broke while they ran; `error` of the turn says why
aborted       turns that were ended from outside
capacity      answers that ended where the KV pool was full, and not where they should
nothing       no question was answered
lost-steps    the records of verify steps are gone: no positions, no near-ties
no-steps      no verify step: there is nothing to divide by
passes        a later pass over the questions did not repeat the first one
unfinished    the run was not run to its end
idle-drafter  drafts are hardly ever accepted: a remark, the numbers themselves are right
"""

from dataclasses import dataclass
from typing import Literal

DoubtKind = Literal[
    "failed",
    "aborted",
    "capacity",
    "nothing",
    "lost-steps",
    "no-steps",
    "passes",
    "unfinished",
    "idle-drafter",
]
REMARKS: tuple[DoubtKind, ...] = ("idle-drafter",)
"""Doubts that leave a result a result."""
EVERYWHERE = "*"
"""In place of a cell or an arm: the whole run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """One reason not to trust a cell and arm.

    Attributes:
        kind: see the module.
        cell_id, arm: where; `EVERYWHERE` is the whole run.
        text: half a sentence for people, with counts and the cause.
        questions: those it concerns.
    """

    kind: DoubtKind
    cell_id: str
    arm: str
    text: str
    questions: tuple[str, ...] = ()

    @property
    def is_fatal(self) -> bool:
        """Whether it takes a result away, rather than remarking on it."""
        return self.kind not in REMARKS

    @property
    def sentence(self) -> str:
        """The text, with where it belongs in front."""
        if self.cell_id == EVERYWHERE:
            return self.text
        return f"{self.cell_id} {self.arm}: {self.text}"
