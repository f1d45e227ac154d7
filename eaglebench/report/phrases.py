"""What the formats for people say in the same words."""

from collections.abc import Sequence
from dataclasses import replace
from math import expm1, isfinite
from typing import Any

from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.records.measured import MeasuredRun
from eaglebench.records.verdict import BY_WEIGHT, Finding, Judgement, Verdict
from eaglebench.report.document import ReportDocument
from eaglebench.report.rows import Row
from eaglebench.stats.difference import Difference
from eaglebench.stats.pairing import NOT_PAIRED, PairClass

NO_VALUE = "-"
UNKNOWN = "n/a"
COMPARED: tuple[PairClass, ...] = ("identical", "near-tie", "draft-state", "target-state")
LEAST_SHOWN_P = 0.0001
SHA_LENGTH = 12
SHOWN_QUESTIONS = 8
SHARE = "+z.2%"
"""Relative changes; `z` spares the reader a -0.00%."""
SHORT_SHARE = "+z.1%"
"""Relative changes of what varies from run to run, where there is little room."""
LENGTH = (
    "acceptance length = tokens delivered by verify steps / verify steps (prefill's token not "
    "counted)"
)
_WORDS: dict[Verdict, str] = {
    "PASS": "measured, and no worse than allowed",
    "REGRESSED": "measured, and worse than allowed",
    "IMPROVED": "measured, and better: a new baseline is due",
    "INCONCLUSIVE": "measured, but it can't be told yet whether anything is worse",
    "NOT_COMPARABLE": "not the same workload or machine, or nothing to compare with",
    "FAILED": "questions that should have been answered were not",
}


def number(value: float | None, form: str) -> str:
    """The value in this format; a dash where there is none."""
    return NO_VALUE if value is None or not isfinite(value) else format(value, form)


def p_text(p_value: float | None) -> str:
    """A p-value with four digits; a dash where there is none."""
    if p_value is not None and p_value < LEAST_SHOWN_P:
        return f"< {LEAST_SHOWN_P}"
    return number(p_value, ".4f")


def verdict_words(judgement: Judgement) -> str:
    """The verdict over all findings, as half a sentence."""
    return _WORDS[judgement.verdict]


def row_verdict(document: ReportDocument, row: Row) -> Verdict | None:
    """The heaviest verdict on one cell and arm; None where nothing was judged."""
    name = (row.cell_id, row.arm)
    mine = tuple(f for f in document.judgement.findings if (f.cell_id, f.arm) == name)
    return replace(document.judgement, findings=mine).verdict if mine else None


def heaviest_first(findings: Sequence[Finding]) -> list[Finding]:
    """Findings by weight of their verdict, otherwise in their order."""
    return sorted(findings, key=lambda finding: BY_WEIGHT.index(finding.verdict))


def questions_text(questions: Sequence[str]) -> str:
    """The first few of a list of questions."""
    if not questions:
        return ""
    more = f" and {len(questions) - SHOWN_QUESTIONS} more" * (len(questions) > SHOWN_QUESTIONS)
    return f"questions {', '.join(questions[:SHOWN_QUESTIONS])}{more}"


def finding_text(finding: Finding) -> str:
    """One finding as one line."""
    name = f"{finding.verdict} {finding.cell_id} {finding.arm} {finding.metric}: {finding.reason}"
    return f"{name}; {questions_text(finding.questions)}" if finding.questions else name


def class_counts(difference: Difference) -> str:
    """How many turns are the same, part at near-ties, and part by a fault."""
    rare = [kind for kind in NOT_PAIRED if difference.count(kind)]
    return ", ".join(f"{difference.count(kind)} {kind}" for kind in (*COMPARED, *rare))


def throughput_text(difference: Difference) -> str:
    """The change of the throughput, with its interval where there were passes to make one from."""
    ratio = difference.ratio
    if ratio is None:
        shown = number(difference.throughput, SHARE)
        return shown if shown == NO_VALUE else f"{shown} (no pairs of passes, no interval)"
    change = number(ratio.change, SHARE)
    passes = "1 pass" if ratio.passes == 1 else f"{ratio.passes} passes"
    width = number(ratio.half_width, ".2%")
    if width == NO_VALUE:
        return f"{change} ({passes}, no interval)"
    return f"{change} +- {width} ({passes})"


def split_text(difference: Difference) -> str | None:
    """Where the change of the throughput came from; None where a factor was not measured."""
    if difference.log_ratio is None:
        return None
    acceptance, rate, share = (f"{expm1(part):{SHORT_SHARE}}" for part in difference.log_ratio)
    whole = f"{expm1(sum(difference.log_ratio)):{SHORT_SHARE}}"
    return f"throughput {whole} = acceptance {acceptance} x step rate {rate} x decode share {share}"


def other_difference(row: Row) -> Difference | None:
    """Against another arm than `no-cache`: what a fault arm is also compared with."""
    return next((d for d in row.differences if d.against != BASELINE_ARM), None)


def workload_text(document: ReportDocument) -> str:
    """Suite, models and dtype; the cell where there is only one."""
    run = document.run
    models = f"target {fact_text(run.models.get('target_id'))}"
    if run.models.get("draft_id"):
        models += f" with head {run.models['draft_id']}"
    cells = list(dict.fromkeys(row.cell_id for row in document.rows))
    parts = [
        f"suite {fact_text(run.suite.get('name'))}",
        models,
        fact_text(run.models.get("dtype")),
        f"cell {cells[0]}" if len(cells) == 1 else f"{len(cells)} cells",
    ]
    return ", ".join(parts)


def environment_line(run: MeasuredRun) -> str:
    """What it ran on, in one line."""
    exact, timing = run.environment.get("exact", {}), run.environment.get("timing", {})
    parts = [
        f"CPU {fact_text(timing.get('cpu'))}",
        f"device {fact_text(exact.get('device'))}",
        f"torch {fact_text(exact.get('torch'))}",
        f"dtype {fact_text(exact.get('dtype', run.models.get('dtype')))}",
        f"threads {fact_text(exact.get('num_threads'))}",
        f"commit {commit_text(run)}",
    ]
    return ", ".join(parts)


def commit_text(run: MeasuredRun) -> str:
    """Commit of the measured code, marked where it had changes."""
    if run.git is None or not run.git.get("sha"):
        return UNKNOWN
    return str(run.git["sha"])[:SHA_LENGTH] + "-dirty" * bool(run.git.get("dirty"))


def fact_text(value: Any) -> str:
    """A fact from the run's files; `n/a` where it is not known."""
    return UNKNOWN if value is None else str(value)
