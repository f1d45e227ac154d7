"""The answer of a run in a few lines: the verdict, then where to look.

A run is judged by itself: its arms against `no-cache`, its cells against each other. Where nothing
was to be judged, as in a sweep over draft shapes, what the sweep found is the answer.
"""

from collections import Counter
from collections.abc import Sequence

from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.records.verdict import Finding
from eaglebench.records.words import counted
from eaglebench.report.cell_names import CellNames
from eaglebench.report.document import ReportDocument
from eaglebench.report.fault_table import fault_shows, planted_faults
from eaglebench.report.phrases import (
    VERDICT_WORDS,
    first_few,
    heaviest_first,
    reason_text,
    verdict_counts,
)
from eaglebench.report.sweep_tables import sweep_answers
from eaglebench.stats.cells import ACROSS_CELLS

MEASURED = "MEASURED"
"""Instead of a verdict, where there was nothing to judge."""
NOTHING = "one arm and one setting, so there is nothing to compare with"
SHOWN = 4
SEPARATE = ("PASS", "IMPROVED")


def headline(document: ReportDocument) -> str:
    """The verdict; of a run by itself that had nothing to judge, that it was measured."""
    judgement = document.judgement
    is_alone = judgement.baseline == BASELINE_ARM
    return MEASURED if is_alone and not judgement.findings else judgement.verdict


def headline_words(document: ReportDocument) -> str:
    """What the verdict says, and against what."""
    judgement = document.judgement
    if judgement.baseline != BASELINE_ARM:
        return f"against {judgement.baseline}: {VERDICT_WORDS[judgement.verdict]}"
    return f"no baseline, arms and cells against each other: {answer_lines(document)[0]}"


def answer_lines(document: ReportDocument) -> list[str]:
    """The answer, then where to look; the verdict is `headline`."""
    judgement = document.judgement
    if judgement.baseline != BASELINE_ARM:
        counts = verdict_counts(judgement) or "nothing judged"
        against = f"{judgement.candidate} against {judgement.baseline}: {counts}"
        return [against, *sweep_answers(document.sweeps)]
    names = CellNames(row.cell_id for row in document.rows)
    bad = heaviest_first(f for f in judgement.findings if f.verdict not in SEPARATE)
    lines = [_bad(document, names, finding) for finding in bad[:SHOWN]]
    lines += [f"and {len(bad) - SHOWN} more findings"] if len(bad) > SHOWN else []
    lines += _arms(judgement.findings, len(names.cells))
    lines += _cells(judgement.findings)
    lines += sweep_answers(document.sweeps)
    lines += _faults(document, names)
    return lines or [NOTHING]


def _bad(document: ReportDocument, names: CellNames, finding: Finding) -> str:
    """One finding that is no pass, and the command that looks at it."""
    heavier = finding.verdict == document.judgement.verdict  # then it stands in front already
    where = "" if heavier else f"{finding.verdict}: "
    where += finding.arm + (f" in {names[finding.cell_id]}" if len(names.cells) > 1 else "")
    if finding.verdict != "REGRESSED" or not finding.questions:
        return f"{where}: {reason_text(finding)}"
    run, questions = document.run.run_id, f"questions {first_few(finding.questions)}"
    if finding.metric == ACROSS_CELLS:
        return f"{where}: {questions}; {finding.reason}"
    look = f"eaglebench explain {run} {finding.cell_id} {finding.questions[0]} --arm {finding.arm}"
    return f"{where}: {questions}; {look}"


def _arms(findings: Sequence[Finding], num_cells: int) -> list[str]:
    """`radix = no-cache in 4 of 4 cells`, a line an arm."""
    inside = [f for f in findings if f.metric.endswith(f" vs {BASELINE_ARM}")]
    asked, same = Counter(f.arm for f in inside), Counter(f.arm for f in inside if _is_same(f))
    idle = Counter(f.arm for f in inside if _is_same(f) and "not exercised" in f.reason)
    lines = []
    for arm in asked:
        if same[arm]:
            text = f"{arm} = {BASELINE_ARM} in {same[arm]} of {counted(max(asked[arm], 1), 'cell')}"
            text = f"{arm} = {BASELINE_ARM}" if num_cells == 1 else text
            text += f", not exercised in {idle[arm]}" if idle[arm] else ""
            lines.append(text)
    return lines


def _cells(findings: Sequence[Finding]) -> list[str]:
    across = [f for f in findings if f.metric == ACROSS_CELLS]
    if not across:
        return []
    same = sum(map(_is_same, across))
    return [f"cells draft alike in {same} of {len(across)} comparisons, arm by arm"]


def _is_same(finding: Finding) -> bool:
    return finding.verdict == "PASS"


def _faults(document: ReportDocument, names: CellNames) -> list[str]:
    """What became of each planted fault, a line for all of them."""
    shown: dict[str, Counter[str]] = {}
    for fault in planted_faults(document):
        if word := fault_shows(fault):
            shown.setdefault(fault.row.arm, Counter())[word] += 1
    told = []
    for arm, words in shown.items():
        counts = (word if len(names.cells) == 1 else f"{word} in {n}" for word, n in words.items())
        told.append(f"{arm} {', '.join(counts)}")
    return [f"planted faults: {'; '.join(told)}"] if told else []
