"""Whether a run may become a baseline: what is refused, and what can be allowed."""

from collections.abc import Callable
from dataclasses import dataclass

from eaglebench.bench.documents import load_document
from eaglebench.errors import UsageError
from eaglebench.plan.options import workload_of
from eaglebench.records.knobs import CACHE_ARMS
from eaglebench.records.snapshot import Snapshot
from eaglebench.records.verdict import Verdict
from eaglebench.report.document import ReportDocument
from eaglebench.stats.snapshot import make_snapshot
from eaglebench.store.run_folder import RunFolder

_GOOD: tuple[Verdict, ...] = ("PASS", "IMPROVED")
_OF_DOUBTS: tuple[Verdict, ...] = ("FAILED", "NOT_COMPARABLE")
"""What answers that failed or were cut come to; allowed where such a run is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What the user takes upon themselves: uncommitted code, results that can't be trusted."""

    dirty: bool
    untrusted: bool


def fit_for_baseline(
    folder: RunFolder, allowed: Allowed, *, notice: Callable[[str], None]
) -> Snapshot:
    """The snapshot of a run that may become a baseline; remarks go to `notice`.

    Raises:
        UsageError: it was not finished, can't be trusted, judges badly by itself, or its code was
            changed.
    """
    document = load_document(folder)
    snapshot = make_snapshot(document.run, workload_of(document.run.config))
    if document.run.status != "done":
        raise UsageError(f"run {folder.run_id} is {document.run.status}; expected one that is done")
    for doubt in document.doubts:
        if doubt.is_fatal and not allowed.untrusted:
            raise UsageError(
                f"run {folder.run_id} can't be a baseline: {doubt.sentence}",
                hint="see what went wrong, or pass --allow-untrusted; later runs may then go "
                "wrong in the same way",
            )
        notice(f"note: {doubt.sentence}")
    _check_judgement(document, allowed)
    if snapshot.created_from.endswith("-dirty") and not allowed.dirty:
        raise UsageError(
            f"run {folder.run_id} was made of code with uncommitted changes",
            hint="commit and run again, or pass --allow-dirty",
        )
    return snapshot


def _check_judgement(document: ReportDocument, allowed: Allowed) -> None:
    """Cache arms have to agree with `no-cache`; planted faults need not."""
    good = (*_GOOD, *_OF_DOUBTS) if allowed.untrusted else _GOOD
    for finding in document.judgement.findings:
        if finding.arm in CACHE_ARMS and finding.verdict not in good:
            raise UsageError(
                f"run {document.run.run_id} can't be a baseline: {finding.cell_id} {finding.arm} "
                f"is {finding.verdict}: {finding.reason}"
            )
