"""What `diagnose` found, as a table and as its answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from eaglebench.records.verdict import Finding
from eaglebench.report.table import Column, Table, make_table
from eaglebench.stats.bootstrap import LEAST_QUESTIONS, Length
from eaglebench.stats.difference import Difference

NOT_EXERCISED = "not exercised"
WITH_CACHE = ", cache"
"""Behind the name of a suspect that is tried with the prefix cache as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """One cell and arm against the plainest cell without a cache.

    Attributes:
        name: what is on in it.
        cell_id, arm: where it was measured.
        difference: question by question.
        finding: the verdict.
        is_exercised: whether it had anything to do; a cache that never hits has not.
    """

    name: str
    cell_id: str
    arm: str
    difference: Difference
    finding: Finding
    is_exercised: bool

    @property
    def is_guilty(self) -> bool:
        """Whether drafts or tokens changed where nothing may change."""
        return self.finding.verdict not in {"PASS", "INCONCLUSIVE"}

    @property
    def verdict(self) -> str:
        """The verdict, if there was something to judge."""
        return self.finding.verdict if self.is_exercised or self.is_guilty else NOT_EXERCISED


COLUMNS = (
    Column("suspect", "name"),
    Column("acceptance length", "difference.counts.acceptance_length", "ratio"),
    Column("change", "difference.acceptance", "change"),
    Column("verdict", "verdict", "verdict"),
    Column("why", "finding.reason"),
)


def suspects_table(suspects: Sequence[Suspect], title: str) -> Table:
    """A line a suspect."""
    return make_table(COLUMNS, suspects, title=title)


def length_text(length: Length) -> str:
    """`1.77 (1.61 to 1.95 on other prompts)`."""
    if length.low == length.high:
        return f"{length.value:.2f}"
    return f"{length.value:.2f} ({length.low:.2f} to {length.high:.2f} on other prompts)"


def answer(
    run_id: str,
    suspects: Sequence[Suspect],
    head: Length,
    whole: Length,
    expected: float | None,
) -> list[str]:
    """The sentences that answer: who is at fault, and how far from what was expected."""
    lines = []
    guilty = [suspect for suspect in suspects if suspect.is_guilty]
    for suspect in guilty:
        change = suspect.difference.acceptance
        cost = "" if change is None else f" (acceptance length {change:+.2%})"
        line = f"at fault: {suspect.name}{cost}"
        if suspect.finding.questions:
            question = suspect.finding.questions[0]
            where = f"{run_id} {suspect.cell_id} {question} --arm {suspect.arm}"
            line += f"; eaglebench explain {where}"
        lines.append(line)
    tried = dict.fromkeys(s.name.removesuffix(WITH_CACHE) for s in suspects if s.is_exercised)
    if not guilty:
        lines.append(
            f"not at fault: {', '.join(tried)}; with and without cache, they change no draft"
        )
    idle = [suspect.name for suspect in suspects if not suspect.is_exercised]
    if idle:
        lines.append(f"{NOT_EXERCISED}: {', '.join(idle)}; these prompts share no cached prefix")
    lines.append(f"the head alone, without cache, chunks or batch: {length_text(head)}")
    if expected is not None:
        lines.append(_distance(head, whole, expected, is_guilty=bool(guilty)))
    if head.num_questions < LEAST_QUESTIONS:
        lines.append(
            f"{head.num_questions} questions say little about other prompts; {LEAST_QUESTIONS} or "
            "more would"
        )
    return lines


def _distance(head: Length, whole: Length, expected: float, *, is_guilty: bool) -> str:
    text = (
        f"expected {expected:.2f}: measured {length_text(whole)}, {whole.value / expected - 1:+.1%}"
    )
    if whole.low <= expected <= whole.high:
        return f"{text}; no further away than prompts differ"
    if whole.low > expected:
        return f"{text}; more than was expected"
    if is_guilty and head.high >= expected:
        return f"{text}; the head alone reaches it, so what is at fault above explains it"
    which = "the head alone is below it as well" if is_guilty else "it is the head"
    return (
        f"{text}; {which}: its weights, what it was trained on, these prompts and their template "
        "(eaglebench heads inspect shows what was read of it)"
    )
