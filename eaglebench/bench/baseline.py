"""Baselines: which run may become one, saved, listed, opened and deleted."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eaglebench.bench.documents import load_document
from eaglebench.errors import EaglebenchError, InputFileError, StorageError, UsageError
from eaglebench.files import escaped
from eaglebench.gate.comparable import timing_differences, workload_differences
from eaglebench.plan.options import workload_of
from eaglebench.records.flags import in_folder
from eaglebench.records.knobs import CACHE_ARMS
from eaglebench.records.measured import MeasuredRun
from eaglebench.records.snapshot import Snapshot
from eaglebench.records.verdict import Verdict
from eaglebench.records.words import counted
from eaglebench.report.document import ReportDocument
from eaglebench.stats.snapshot import counts_of, make_snapshot, with_runs
from eaglebench.store.baseline import (
    baselines_folder,
    find_baseline,
    list_baselines,
    read_baseline,
    write_baseline,
)
from eaglebench.store.decode import measured_run
from eaglebench.store.run_folder import RunFolder, list_runs, slug

_GOOD: tuple[Verdict, ...] = ("PASS", "IMPROVED")
_OF_DOUBTS: tuple[Verdict, ...] = ("FAILED", "NOT_COMPARABLE")
"""What answers that failed or were cut come to; allowed where such a run is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What the user takes upon themselves: uncommitted code, results that can't be trusted."""

    dirty: bool
    untrusted: bool


def refuse_known(root: Path, name: str) -> None:
    """Refuse to make a baseline anew under a name that one has.

    Raises:
        UsageError: there is one.
    """
    if slug(name) in list_baselines(root):
        raise UsageError(
            f"there is a baseline {name!r} already",
            hint=f"eaglebench baseline accept {name}{in_folder(root)}, which shows what changes",
        )


def save_baseline(
    root: Path,
    name: str,
    folder: RunFolder,
    reason: str | None,
    allowed: Allowed,
    *,
    runs: int = 1,
    notice: Callable[[str], None],
) -> tuple[Path, Snapshot]:
    """Make a run the baseline of a name; its file, and what is in it.

    With `runs` above 1 it knows how far whole runs of this work differ: the run and those before it.

    Raises:
        UsageError: there is no reason, the run may not become one, or there are not so many runs.
        StorageError: the disk refuses; an older one is intact.
    """
    snapshot = fit_for_baseline(folder, allowed, notice=notice)
    others = _earlier_twins(root, folder, snapshot, runs - 1)
    if not (reason and reason.strip()):
        raise UsageError(
            "a baseline needs a reason, for those who read its history",
            hint='--reason "rebase on #123"',
        )
    made = with_runs(snapshot, others) if others else snapshot
    return write_baseline(root, name, made, escaped(reason.strip())), made


def _earlier_twins(root: Path, folder: RunFolder, snapshot: Snapshot, count: int) -> list[Snapshot]:
    """The newest runs before this one that did the same work here.

    Raises:
        UsageError: there are fewer, or one of them has other counts.
    """
    found: list[Snapshot] = []
    known = [run for run in list_runs(root) if run.run_id < folder.run_id] if count else []
    for run in reversed(known):
        if len(found) < count and (other := _twin(run, snapshot)) is not None:
            found.append(other)
    if len(found) < count:
        raise UsageError(
            f"{counted(1 + len(found), 'run')} of this work in {root / 'runs'}; expected {1 + count}",
            hint="run it again; runs of other options, code or machines are not counted",
        )
    for other in found:
        if counts_of(other) != counts_of(snapshot):
            raise UsageError(
                f"runs {other.name} and {snapshot.name} have other counts, so they are no "
                "repetitions of one another",
                hint=f"eaglebench compare {other.name} {snapshot.name}{in_folder(root)}",
            )
    return found


def _twin(folder: RunFolder, snapshot: Snapshot) -> Snapshot | None:
    """A finished run of the same work, code and machine; None of any other."""
    try:
        run = measured_run(folder)
    except EaglebenchError:
        return None
    other = make_snapshot(run, workload_of(run.config))
    same = (
        not workload_differences(other, snapshot)
        and not timing_differences(other, snapshot)
        and other.created_from == snapshot.created_from
        and other.arms
        and run.status == "done"
    )
    return other if same else None


def open_baseline(root: Path, name: str) -> Snapshot:
    """A baseline by name or path.

    Raises:
        NothingMeasuredError: there is none; the nearest names are offered.
        InputFileError: it is broken.
    """
    return read_baseline(find_baseline(root, name))


def known_baselines(root: Path) -> dict[str, Snapshot | InputFileError]:
    """All baselines by name, each as what it holds or why it can't be read."""
    found: dict[str, Snapshot | InputFileError] = {}
    for name in list_baselines(root):
        try:
            found[name] = read_baseline(baselines_folder(root) / f"{name}.jsonl")
        except InputFileError as error:
            found[name] = error
    return found


def delete_baseline(root: Path, name: str) -> Path:
    """Delete a baseline; returns where it was.

    Raises:
        NothingMeasuredError: there is none.
        StorageError: the disk refuses.
    """
    path = find_baseline(root, name)
    try:
        path.unlink()
    except OSError as error:
        raise StorageError(f"{path} can't be deleted: {error.strerror}") from error
    return path


def run_of_artifact(folder: Path) -> Path:
    """The one run in or below the folder of a CI artifact.

    Raises:
        UsageError: there is none, or more than one.
    """
    if (folder / "run.json").is_file():
        return folder
    found = sorted(path.parent for path in folder.rglob("run.json"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise UsageError(f"{folder} holds {counted(len(found), 'run')} ({names}); expected one")
    return found[0]


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
    for arm in snapshot.arms:
        if arm.acceptance_length is None and not arm.failed:
            raise UsageError(
                f"run {folder.run_id} can't be a baseline: verify steps and accepted tokens of "
                f"{arm.cell_id} {arm.arm} were not measured, so that nothing could be judged",
            )
    _check_judgement(document, allowed)
    if snapshot.created_from.endswith("-dirty") and not allowed.dirty:
        raise UsageError(
            f"run {folder.run_id} was made of code with uncommitted changes{_changes(document.run)}",
            hint="commit and run again, or pass --allow-dirty",
        )
    return snapshot


def _changes(run: MeasuredRun) -> str:
    """`: a.py, b.py`; nothing where an older run did not name them."""
    names = (run.git or {}).get("changed") or []
    return f": {', '.join(names[:8])}" + (", ..." if len(names) > 8 else "") if names else ""


def _check_judgement(document: ReportDocument, allowed: Allowed) -> None:
    """Cache arms have to agree with `no-cache`; planted faults need not."""
    good = (*_GOOD, *_OF_DOUBTS) if allowed.untrusted else _GOOD
    for finding in document.judgement.findings:
        if finding.arm in CACHE_ARMS and finding.verdict not in good:
            raise UsageError(
                f"run {document.run.run_id} can't be a baseline: {finding.cell_id} {finding.arm} "
                f"is {finding.verdict}: {finding.reason}"
            )
