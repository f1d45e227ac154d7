"""Two stored runs as one comparison."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from eaglebench.bench.documents import tau_of
from eaglebench.bench.judge import check_renames, names_of, with_every_option
from eaglebench.bench.stored_run import Run
from eaglebench.gate.arms import judge_arm, judge_runs
from eaglebench.gate.comparable import (
    are_only_engines,
    engine_of,
    exact_differences,
    without_setup,
    workload_differences,
)
from eaglebench.gate.finding import doubt_findings, refused
from eaglebench.gate.setups import judge_setups
from eaglebench.gate.shared_counts import judge_bookkeeping
from eaglebench.plan.options import workload_of
from eaglebench.records.measured import MeasuredRun
from eaglebench.records.verdict import Finding, Judgement
from eaglebench.records.words import doing
from eaglebench.report.side_by_side import PairedRow
from eaglebench.stats.bootstrap import LEAST_QUESTIONS, LengthInterval, length_interval
from eaglebench.stats.difference import Side, make_difference, sides_of
from eaglebench.stats.snapshot import make_snapshot, question_counts
from eaglebench.stats.trust import doubts_of

Key = tuple[str, str]
"""Cell and arm."""
TIMES = (
    "times of two runs are not judged: eaglebench gate --fail-on throughput:5% holds their ratios to "
    "no-cache together, eaglebench ab runs both versions in turns"
)
_MAY_DIFFER = "num_questions"
"""Runs of fewer questions are compared on those that both have."""


def pair_runs(
    before: Run,
    after: Run,
    renamed: Mapping[str, str],
    *,
    across_environments: bool,
) -> tuple[list[PairedRow], Judgement]:
    """Rows and verdicts of everything that both runs hold.

    Raises:
        NothingMeasuredError: one of them holds no finished turn.
        UsageError: an arm to be renamed is missing.
    """
    earlier, later = before.measured, after.measured
    wrong, setup = _why_not(earlier, later, across_environments=across_environments)
    if wrong:
        return [], _judgement(earlier, later, [refused(wrong)], [])
    check_renames(renamed, {turn.arm for turn in earlier.turns}, f"run {earlier.run_id}")
    old, new = _sides(earlier, {}), _sides(later, renamed)
    twins = _twins(old, new)
    setup += [f"draft shape: {there[0]} before, {here[0]} now" for here, there in twins.items()]
    is_engine = are_only_engines(setup)
    tau = tau_of(later).wider(tau_of(earlier))
    rows, findings = [], doubt_findings(doubts_of(later))
    doubts = [doubt for doubt in doubts_of(earlier) if doubt.is_fatal]
    findings += doubt_findings(doubt for doubt in doubts if doubt.kind == "unfinished")
    for key, side in new.items():
        there = key if key in old else twins.get(key)
        if there is None:
            continue
        difference = make_difference(side, old[there], earlier.run_id, tau)
        interval, shared = _interval(side, old[there])
        rows.append(PairedRow(cell_id=key[0], arm=key[1], difference=difference, interval=interval))
        if is_engine:
            findings.append(judge_arm(*key, difference))
        elif setup:
            findings.append(judge_setups(*key, difference, interval, shared))
        else:
            findings.append(judge_runs(*key, difference, interval))
            findings += judge_bookkeeping(*key, difference)
    findings += [
        refused(f"in {earlier.run_id}, but not in {later.run_id}", key)
        for key in old
        if key not in new and key not in twins.values()
    ]
    notes = [f"{earlier.run_id}: {doubt.sentence}" for doubt in doubts] + _left_out(old, new, twins)
    if setup:
        how = "and may draft nothing else" if is_engine else "and are compared by what they accept"
        notes.append(f"the setups differ, {how}: " + "; ".join(setup))
    if any(difference.throughput is not None for difference in (row.difference for row in rows)):
        notes.append(TIMES)
    judgement = _judgement(earlier, later, findings, notes)
    if (not setup or is_engine) and not renamed:
        judgement = replace(judgement, commands=_where_to_look(findings, before, after))
    return rows, judgement


def _where_to_look(findings: Sequence[Finding], before: Run, after: Run) -> tuple[str, ...]:
    """The command that shows the first question that got worse, step by step."""
    worse = [f for f in findings if f.verdict == "REGRESSED" and f.questions]
    if not worse:
        return ()
    first = worse[0]
    words = (str(after.path), first.cell_id, first.questions[0], "--arm", first.arm)
    return (shlex.join(("eaglebench", "explain", *words, "--against-run", str(before.path))),)


def _why_not(
    earlier: MeasuredRun, later: MeasuredRun, *, across_environments: bool
) -> tuple[str, list[str]]:
    """Why two runs can't be compared, and what their setups differ in."""
    old, new = (
        with_every_option(make_snapshot(run, workload_of(run.config))) for run in (earlier, later)
    )
    old, new = (
        replace(each, workload={n: v for n, v in each.workload.items() if n != _MAY_DIFFER})
        for each in (old, new)
    )
    setup = workload_differences(new, old)
    if setup:
        is_one = engine_of(old) == engine_of(new)
        old, new = (without_setup(each, is_one_engine=is_one) for each in (old, new))
    wrong = workload_differences(new, old)
    if wrong:
        return "the workloads differ: " + "; ".join(wrong), []
    differing = exact_differences(new, old)
    if differing and not across_environments:
        return "counts need the same environment; " + "; ".join(differing), []
    return "", setup


def _interval(mine: Side, theirs: Side) -> tuple[LengthInterval | None, int]:
    """What is claimed of other prompts, from enough questions; and how many both answered."""
    here, there = question_counts(mine.turns), question_counts(theirs.turns)
    shared = {q.question_id for q in here} & {q.question_id for q in there}
    if len(shared) < LEAST_QUESTIONS:
        return None, len(shared)
    return length_interval(here, there), len(shared)


def _twins(old: Mapping[Key, Side], new: Mapping[Key, Side]) -> dict[Key, Key]:
    """Cells that only the draft shape parts, where each run has one of them; by the later one's key."""
    lone = [{k: s for k, s in a.items() if k not in b} for a, b in ((new, old), (old, new))]
    here, there = ([(_setting(key, side), key) for key, side in each.items()] for each in lone)
    counts = Counter(setting for setting, _ in (*here, *there))
    known = dict(there)
    return {
        key: known[setting] for setting, key in here if setting in known and counts[setting] == 2
    }


def _setting(key: Key, side: Side) -> Key:
    """A cell without its draft shape, and the arm."""
    return key[0].replace(side.turns[0].knobs.draft.name, ""), key[1]


def _sides(run: MeasuredRun, renamed: Mapping[str, str]) -> dict[tuple[str, str], Side]:
    names = names_of((turn.arm for turn in run.turns), renamed, f"run {run.run_id}")
    first = (turn for turn in run.turns if turn.pass_index == 0 and turn.arm in names)
    sides = sides_of(first, run.blocks)
    return {(cell_id, names[arm]): side for (cell_id, arm), side in sides.items()}


def _left_out(
    old: Mapping[Key, Side], new: Mapping[Key, Side], twins: Mapping[Key, Key]
) -> list[str]:
    lone = [key for key in new if key not in old and key not in twins]
    notes = [f"{' '.join(key)} is only in the later run" for key in lone]
    for key in new:
        if key in old:
            here, there = ({turn.question_id for turn in side[key].turns} for side in (new, old))
            if here != there:
                notes.append(
                    f"{' '.join(key)}: {doing(len(here & there), 'question', 'are')} in both, "
                    f"{len(here ^ there)} are left out"
                )
    return notes


def _judgement(
    earlier: MeasuredRun, later: MeasuredRun, findings: list[Finding], notes: list[str]
) -> Judgement:
    return Judgement(
        candidate=later.run_id,
        baseline=earlier.run_id,
        findings=tuple(findings),
        notes=tuple(notes),
    )
