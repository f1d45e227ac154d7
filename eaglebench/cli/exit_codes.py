"""What the exit status says; every number has one meaning."""

from collections.abc import Iterable

from eaglebench.errors import EaglebenchError, NothingMeasuredError, UsageError
from eaglebench.records.doubt import Doubt
from eaglebench.records.verdict import Verdict

PASS = 0
CRASH = 1
USAGE = 2
REGRESSION = 3
INCONCLUSIVE = 4
NOTHING_MEASURED = 5
INTERRUPTED = 130


def exit_code(error: EaglebenchError) -> int:
    """The exit status for an error that was raised on purpose."""
    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, NothingMeasuredError):
        return NOTHING_MEASURED
    return CRASH


def trust_code(doubts: Iterable[Doubt]) -> int:
    """The exit status for a run: what can't be trusted is no measurement."""
    return NOTHING_MEASURED if any(doubt.is_fatal for doubt in doubts) else PASS


def shown_code(doubts: Iterable[Doubt], places: Iterable[tuple[str, str]]) -> int:
    """The exit status for showing a run: 5 only where no cell and arm of it was measured."""
    empty = {(doubt.cell_id, doubt.arm) for doubt in doubts if doubt.kind == "nothing"}
    return NOTHING_MEASURED if empty >= set(places) else PASS


class VerdictStatus(int):
    """The exit status of a verdict: it stands, whether or not the verdict could be shown."""


def verdict_code(verdict: Verdict, *, is_strict: bool = False) -> VerdictStatus:
    """The exit status for a verdict; noise fails only where `--strict` asks for it."""
    if verdict in {"REGRESSED", "FAILED"}:
        return VerdictStatus(REGRESSION)
    if verdict == "NOT_COMPARABLE":
        return VerdictStatus(NOTHING_MEASURED)
    is_undecided = verdict == "INCONCLUSIVE" and is_strict
    return VerdictStatus(INCONCLUSIVE if is_undecided else PASS)
