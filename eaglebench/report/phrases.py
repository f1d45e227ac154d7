"""What the formats for people say, each value and each sentence spelled once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import expm1, isfinite
from typing import Any

from eaglebench.records.measured import MeasuredRun
from eaglebench.records.verdict import BY_WEIGHT, Finding, Judgement, Verdict
from eaglebench.records.words import counted
from eaglebench.report.document import ReportDocument
from eaglebench.report.rows import Row
from eaglebench.stats.difference import Difference
from eaglebench.stats.metrics import COUNTERS, relative_change
from eaglebench.stats.noise import WANTED_CHANGE, Noise
from eaglebench.stats.pairing import NOT_PAIRED, Pair, PairClass, Parting
from eaglebench.stats.throughput import RatioEstimate

FORMS: Mapping[str, str] = {
    "text": "{}",
    "verdict": "{}",
    "count": "{:d}",
    "signed": "{:+d}",
    "ratio": "{:.3f}",
    "brief": "{:.2f}",
    "tenths": "{:.1f}",
    "exact": "{:.4f}",  # and whole numbers in full
    "factor": "{:.3f}x",
    "share": "{:.2%}",
    "short share": "{:.1%}",
    "change": "{:+z.2%}",  # `z` spares the reader a -0.00%
    "short change": "{:+z.1%}",  # of what varies from run to run, where there is little room
    "p": "{:.4f}",
}
"""How a value is spelled; all but the first two are numbers."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and the relative half-width of its interval; None where there is none."""

    value: float | None
    half_width: float | None


Value = str | float | Interval | Sequence[float] | None
"""What a cell of a table holds; None is what was not measured."""

NO_VALUE = "-"
UNKNOWN = "n/a"
ABOUT = "~"
"""In front of what one pass says, which has no interval."""
SEEN = "seen"
SEEN_IN_DRAFTS = "seen in drafts"
UNSEEN = "not seen"
IDLE = "not exercised"
"""Of a planted fault, which is there to be seen; the last of any arm and axis."""
COMPARED: tuple[PairClass, ...] = ("identical", "near-tie", "draft-state", "target-state")
LEAST_SHOWN_P = 0.0001
SHA_LENGTH = 12
SHOWN = 8
"""Names in a sentence."""
LENGTH = (
    "acceptance length = tokens delivered by verify steps / verify steps (prefill's token not "
    "counted)"
)
AL_SGLANG = "output tokens / verify steps, as SGLang's `bench_sglang_eagle.py` prints it"
AL_VLLM = "1 + accepted drafts / verify steps that carried drafts, as vLLM logs it"
BY_POSITION = "by position = share of verify steps that accepted draft 1, 2, ..."
LEADS = "gap, swing"
VERDICT_WORDS: Mapping[Verdict, str] = {
    "PASS": "measured, and no worse than allowed",
    "REGRESSED": "measured, and worse than allowed",
    "IMPROVED": "measured, and better: a new baseline is due",
    "INCONCLUSIVE": "measured, but it can't be told yet whether anything is worse",
    "NOT_COMPARABLE": "not the same workload or machine, or nothing to compare with",
    "FAILED": "questions that should have been answered were not",
}


def cell_text(value: Value, form: str) -> str:
    """A value in one of the `FORMS`; a dash where nothing was measured."""
    if isinstance(value, Interval):
        width = cell_text(value.half_width, "share" if form == "change" else "short share")
        text = cell_text(value.value, form)
        return text if NO_VALUE in {text, width} else f"{text} +- {width}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(cell_text(part, form) for part in value) or NO_VALUE
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return NO_VALUE
    if form == "p" and isinstance(value, float) and value < LEAST_SHOWN_P:
        return f"< {LEAST_SHOWN_P}"
    is_whole = form == "exact" and isinstance(value, int)
    return str(value) if isinstance(value, str) or is_whole else FORMS[form].format(value)


def heaviest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by weight of their verdict, otherwise in their order."""
    return sorted(findings, key=lambda finding: BY_WEIGHT.index(finding.verdict))


def several(count: int, name: str) -> str:
    """`1 turn`, `2 turns`; names that end in s have a plural of their own."""
    return f"{count} {name}" if count == 1 else f"{count} {name}{'es' * name.endswith('s') or 's'}"


def first_few(names: Sequence[str], most: int | None = SHOWN) -> str:
    """The first few of a list, and how many more there are."""
    hidden = 0 if most is None else max(0, len(names) - most)
    return ", ".join(names[:most]) + f" and {hidden} more" * bool(hidden)


def questions_answered(row: Row) -> str:
    """`10`, or `7 of 10 (3 turns failed)`."""
    if not row.num_failed:
        return f"{row.num_questions}"
    return f"{row.num_questions} of {row.num_asked} ({several(row.num_failed, 'turn')} failed)"


def paste_lines(rows: Sequence[Row]) -> list[str]:
    """`#questions: 10, Throughput: 269.86 token/s, Acceptance length: 2.39`, a line a cell and arm.

    The words of `bench_sglang_eagle.py`, with its acceptance length (output tokens / verify steps).
    Where turns failed it says so: the numbers are those of the others.
    """
    has_cells = len({row.cell_id for row in rows}) > 1
    names = [f"{row.cell_id} {row.arm}" if has_cells else row.arm for row in rows]
    width = max(map(len, names), default=0)
    return [
        f"{name:<{width}}  #questions: {questions_answered(row)}, Throughput: "
        f"{cell_text(row.tokens_per_s, 'brief')} token/s, Acceptance length: "
        f"{cell_text(row.counts.al_sglang, 'brief')}"
        for name, row in zip(names, rows, strict=True)
    ]


def three_lengths(row: Row) -> str:
    """The three acceptance lengths of a cell and arm, each by its name; cut tokens are in none."""
    counts = row.counts
    return (
        f"{row.arm}: acceptance length {cell_text(counts.acceptance_length, 'ratio')}, al_sglang "
        f"{cell_text(counts.al_sglang, 'ratio')} (in the lines to paste), al_vllm "
        f"{cell_text(counts.al_vllm, 'ratio')} (1 + the shares by position, cut tokens counted)"
    )


def finding_text(finding: Finding) -> str:
    """One finding as one line."""
    return f"{finding.verdict} {place_text(finding)}: {reason_text(finding)}"


def place_text(finding: Finding) -> str:
    """Where a finding belongs."""
    return f"{finding.cell_id} {finding.arm} {finding.metric}"


def reason_text(finding: Finding) -> str:
    """Why, what such times could have shown, and of which questions."""
    power = "" if finding.mde is None else f"smallest detectable {finding.mde:.2%}"
    questions = f"questions {first_few(finding.questions)}" if finding.questions else ""
    return "; ".join(filter(None, (finding.reason, power, questions)))


def verdict_counts(judgement: Judgement) -> str:
    """How many findings have each verdict, the heaviest first."""
    counts = {verdict: len(judgement.with_verdict(verdict)) for verdict in BY_WEIGHT}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)


def difference_text(row: Row, difference: Difference) -> str:
    """A cell and arm against another: who is the same, and who parted."""
    parts = [
        f"{difference.count('identical')} of {counted(len(difference.pairs), 'turn')} identical",
        f"{difference.count('near-tie')} near-ties",
        _classes(difference, (), f"{difference.num_same_output} same output"),
    ]
    if difference.p_value is not None and difference.p_value < 1:
        parts.append(f"p(shorter) {cell_text(difference.p_value, 'p')}")
    return f"{row.cell_id} {row.arm} against {difference.against}: {', '.join(parts)}"


def num_differing(difference: Difference) -> str:
    """`5 of 24`."""
    return f"{len(difference.pairs) - difference.count('identical')} of {len(difference.pairs)}"


def _classes(difference: Difference, always: Sequence[PairClass], *words: str) -> str:
    """How many turns fall in a class; in the rare ones only where there are any."""
    shown = (*always, *(kind for kind in NOT_PAIRED if difference.count(kind)))
    return ", ".join([*words, *(f"{difference.count(kind)} {kind}" for kind in shown)])


def passes_text(ratio: RatioEstimate | None) -> str | None:
    """The throughput over passes, and what they could have shown; None without an interval."""
    if ratio is None or ratio.half_width is None or ratio.mde is None:
        return None
    change = cell_text(Interval(ratio.change, ratio.half_width), "change")
    return f"over {ratio.passes} passes {change}, smallest detectable {ratio.mde:.2%}"


def why_text(row: Row) -> str | None:
    """Classes of the turns; for a fault arm also what the cache without the fault does better."""
    parts = [_classes(row.difference, COMPARED)] if row.difference else []
    other = row.other_difference
    if other is not None:
        change, p_value = cell_text(other.acceptance, "change"), cell_text(other.p_value, "p")
        parts.append(f"against {other.against} {change}, p(shorter) {p_value}")
    return "; ".join(parts) or None


def leads_text(parting: Parting) -> str:
    """How clear a choice was: the smaller lead of the two, and both together: `0.094, 0.56`."""
    if not isfinite(parting.gap):
        return "other draft length"  # there were no two logits
    return f"{parting.gap:.2g}, {parting.swing:.2g}"


def parting_text(pair: Pair) -> str:
    """A turn that parts, and where."""
    parting = pair.parting
    text = f"{pair.kind}: question {pair.question_id} turn {pair.turn + 1}"
    if parting is None:
        return text
    where = f"{parting.side} at step {parting.step}, position {parting.position}"
    return f"{text}: {where}, {LEADS} {leads_text(parting)}"


def changed_counters(difference: Difference) -> str:
    """`verify_steps 390 -> 394 (+1.0%)`, for every exact counter that is not the same."""
    parts = []
    for name in COUNTERS:
        before, after = getattr(difference.other_counts, name), getattr(difference.counts, name)
        if before is not None and after is not None and before != after:
            change = (
                f" ({cell_text(relative_change(before, after), 'short change')})" if before else ""
            )
            parts.append(f"{name} {before} -> {after}{change}")
    return ", ".join(parts)


def noise_text(noise: Noise) -> str:
    """Acceptance lengths of identical passes, and the questions that flipped."""
    lengths = [f"{length:.4f} ({count} x)" for length, count in noise.lengths]
    flipped = f"; flipped: {first_few(noise.flipped)}" if noise.flipped else ""
    return f"acceptance length {first_few(lengths)}{flipped}"


def advice_text(noise: Noise) -> str:
    """Which passes a gate on throughput needs here."""
    rule = f"throughput:{WANTED_CHANGE:.0%}"
    if noise.pairs_needed is None:
        return f"too few passes to say what a gate of {rule} needs; --passes 8:40 tells"
    return f"a gate of {rule} needs --passes {noise.pairs_needed} in the run and in its baseline"


def throughput_text(difference: Difference) -> str:
    """The change of the throughput over paired passes; one pass is marked as no more than that."""
    ratio, shown = difference.ratio, speed_text(difference, is_short=False)
    if shown == NO_VALUE:
        return shown
    return f"{shown} ({'no pairs of passes' if ratio is None else several(ratio.passes, 'pass')})"


def speed_text(difference: Difference, *, is_short: bool = True) -> str:
    """The same where there is little room: `+1.2% +- 0.8%`, or `~+7.3%` without an interval."""
    form, ratio = "short change" if is_short else "change", difference.ratio
    if ratio is not None and _has_interval(ratio):
        return cell_text(Interval(ratio.change, ratio.half_width), form)
    change = difference.throughput if ratio is None else ratio.change
    shown = cell_text(change, form)
    return shown if shown == NO_VALUE else f"{ABOUT}{shown}"


def split_text(difference: Difference) -> str | None:
    """Where the change of the throughput came from, as far as it is known.

    None where a factor was not measured, and where passes don't tell the ratio from 1: its parts
    would be noise. Of one pass each noisy part is marked.
    """
    ratio = difference.ratio
    if difference.log_ratio is None:
        return None
    is_known = ratio is not None and _has_interval(ratio)
    if is_known and ratio is not None and abs(ratio.log_ratio) <= (ratio.half_width or 0.0):
        return None
    about = "" if is_known else ABOUT
    parts = [sum(difference.log_ratio), *difference.log_ratio]
    whole, acceptance, rate, share = (cell_text(expm1(part), "short change") for part in parts)
    end = (
        "" if is_known else f" ({several(ratio.passes, 'pass') if ratio else 'no pairs of passes'})"
    )
    return (
        f"throughput {about}{whole} = acceptance {acceptance} x step rate {about}{rate} x decode "
        f"share {about}{share}{end}"
    )


def _has_interval(ratio: RatioEstimate) -> bool:
    return ratio.half_width is not None and isfinite(ratio.half_width)


def workload_text(document: ReportDocument) -> str:
    """Suite, models and dtype; the cell where there is only one."""
    suite, models = document.run.suite, document.run.models
    cells = list(dict.fromkeys(row.cell_id for row in document.rows))
    parts = [
        f"suite {fact_text(suite.get('name'))}",
        f"target {fact_text(models.get('target_id'))}",
        fact_text(models.get("dtype")),
        f"cell {cells[0]}" if len(cells) == 1 else f"{len(cells)} cells",
    ]
    parts[1] += f" with head {models['draft_id']}" if models.get("draft_id") else ""
    return ", ".join(parts)


def environment_line(run: MeasuredRun) -> str:
    """What it ran on, in one line."""
    exact, timing = run.environment.get("exact", {}), run.environment.get("timing", {})
    facts = {
        "CPU": timing.get("cpu"),
        "device": exact.get("device"),
        "torch": exact.get("torch"),
        "dtype": exact.get("dtype", run.models.get("dtype")),
        "threads": exact.get("num_threads"),
        "commit": commit_text(run),
    }
    return ", ".join(f"{name} {fact_text(value)}" for name, value in facts.items())


def commit_text(run: MeasuredRun) -> str:
    """Commit of the measured code, marked where it had changes."""
    if run.git is None or not run.git.get("sha"):
        return UNKNOWN
    return str(run.git["sha"])[:SHA_LENGTH] + "-dirty" * bool(run.git.get("dirty"))


def fact_text(value: Any) -> str:
    """A fact from the run's files; `n/a` where it is not known."""
    return UNKNOWN if value is None else str(value)
