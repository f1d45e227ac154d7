"""From a run folder and a baseline's name to a judged document."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from eaglebench.bench.documents import inside_of, load_document, with_findings
from eaglebench.errors import UsageError
from eaglebench.gate.cells import judge_cells
from eaglebench.gate.decide import INSIDE, judge
from eaglebench.gate.policy import Policy
from eaglebench.plan.options import workload_of
from eaglebench.plan.run_config import option_defaults
from eaglebench.records.snapshot import Snapshot
from eaglebench.records.verdict import Judgement
from eaglebench.report.document import ReportDocument
from eaglebench.stats.against import against_baseline
from eaglebench.stats.snapshot import make_snapshot
from eaglebench.store.baseline import find_baseline, read_baseline
from eaglebench.store.run_folder import RunFolder


def judge_folder(
    folder: RunFolder,
    root: Path,
    baseline_name: str | None,
    policy: Policy,
    renamed: Mapping[str, str],
    *,
    notice: Callable[[str], None],
) -> ReportDocument:
    """A run judged against a baseline; says which two were chosen, and why.

    Raises:
        NothingMeasuredError: there is no such baseline, or the run holds nothing.
        InputFileError: one of them is broken.
    """
    suite = str(folder.manifest()["suite"]["name"])
    baseline = read_baseline(find_baseline(root, baseline_name or suite))
    check_renames(renamed, {arm.arm for arm in baseline.arms}, f"baseline {baseline.name}")
    document = load_document(folder)
    candidate = _rename(make_snapshot(document.run, workload_of(document.run.config)), renamed)
    notice(f"run {folder.run_id}, started {document.run.started or 'at an unknown time'}")
    notice(f"baseline {baseline.name}, of {baseline.created_from}: {baseline.reason}")
    inside = inside_of(document.rows, renamed)
    candidate, baseline = with_every_option(candidate), with_every_option(baseline)
    judgement = judge(candidate, baseline, policy, inside)
    judgement = _under_own_names(judgement, renamed)
    own_names = {theirs: mine for mine, theirs in renamed.items()}
    return replace(
        document,
        judgement=with_findings(judgement, judge_cells(document.cells, renamed)),
        against=tuple(against_baseline(candidate, baseline, own_names)),
    )


def _under_own_names(judgement: Judgement, renamed: Mapping[str, str]) -> Judgement:
    """Findings on an arm that stood for another one, by the name that it has in its run.

    Their verdict would else stand beside the numbers of the arm it stood for.
    """
    mine = {theirs: name for name, theirs in renamed.items()}
    findings = [
        replace(each, arm=mine[each.arm], reason=f"as {each.arm}: {each.reason}")
        if each.arm in mine and not each.metric.endswith(INSIDE)
        else each
        for each in judgement.findings
    ]
    return replace(judgement, findings=tuple(findings))


def with_every_option(snapshot: Snapshot) -> Snapshot:
    """The snapshot with options that did not exist when it was made, as what they then were."""
    workload = workload_of(option_defaults()) | dict(snapshot.workload)
    return replace(snapshot, workload=workload)


def parse_renames(texts: Sequence[str]) -> dict[str, str]:
    """`unigram=radix` as a mapping.

    Raises:
        UsageError: one is no pair of two names, or a name stands on the same side twice.
    """
    renamed: dict[str, str] = {}
    for text in texts:
        mine, equals, other = (part.strip() for part in text.partition("="))
        if not (mine and equals and other) or mine == other:
            raise UsageError(f"--as {text!r}: expected ARM=ARM, such as unigram=radix")
        if mine in renamed or other in renamed.values():
            raise UsageError(f"--as {text!r}: an arm can stand for one other arm alone")
        renamed[mine] = other
    return renamed


def check_renames(renamed: Mapping[str, str], known: Collection[str], where: str) -> None:
    """Refuse to hold an arm against one that is not there.

    Raises:
        UsageError: names it, and those there are.
    """
    missing = sorted(set(renamed.values()) - set(known))
    if missing:
        raise UsageError(
            f"--as: {where} has no arm {', '.join(missing)}",
            hint=f"there are: {', '.join(sorted(set(known)))}",
        )


def names_of(arms: Iterable[str], renamed: Mapping[str, str], where: str) -> dict[str, str]:
    """What each arm of a run is called; one whose name another one takes is left out.

    Raises:
        UsageError: one to be renamed is missing.
    """
    kept = set(arms) - set(renamed.values())
    if missing := sorted(set(renamed) - kept):
        raise UsageError(f"--as: {where} has no arm {', '.join(missing)}")
    return {arm: renamed.get(arm, arm) for arm in kept}


def _rename(snapshot: Snapshot, renamed: Mapping[str, str]) -> Snapshot:
    names = names_of((arm.arm for arm in snapshot.arms), renamed, "the run")
    arms = tuple(replace(arm, arm=names[arm.arm]) for arm in snapshot.arms if arm.arm in names)
    return replace(snapshot, arms=arms)
