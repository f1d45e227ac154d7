"""A judgement in a terminal: one line a finding that matters, the verdict last."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eaglebench.records.verdict import BY_WEIGHT, Finding, Judgement, Verdict
from eaglebench.report.phrases import questions_text
from eaglebench.report.terminal import WIDE
from eaglebench.stats.metrics import ACCEPTANCE

STYLES: dict[Verdict, str] = {
    "PASS": "green",
    "REGRESSED": "bold red",
    "IMPROVED": "cyan",
    "INCONCLUSIVE": "yellow",
    "NOT_COMPARABLE": "magenta",
    "FAILED": "bold red",
}
SHOWN = 60


def render_judgement(judgement: Judgement, console: Console) -> None:
    """Print findings, the heaviest first, and the verdict over all of them."""
    findings = sorted(judgement.findings, key=lambda finding: BY_WEIGHT.index(finding.verdict))
    shown = [f for f in findings if f.verdict != "PASS"] or _one_an_arm(findings)
    console.print(_table(shown[:SHOWN], is_wide=console.width >= WIDE))
    if len(shown) > SHOWN:
        console.print(f"and {len(shown) - SHOWN} more", style="dim")
    for note in judgement.notes:
        console.print(Text(f"note: {note}", style="yellow"))
    counts = Counter(finding.verdict for finding in findings)
    numbers = ", ".join(f"{counts[v]} {v}" for v in BY_WEIGHT if counts[v]) or "nothing judged"
    console.print(Text(f"{judgement.verdict}", style=STYLES[judgement.verdict]), end=" ")
    console.print(f"{judgement.candidate} against {judgement.baseline}: {numbers}", highlight=False)


def _one_an_arm(findings: Sequence[Finding]) -> list[Finding]:
    """Where everything passed, one line for each cell and arm says so."""
    chosen: dict[tuple[str, str], Finding] = {}
    for finding in sorted(findings, key=lambda finding: finding.metric != ACCEPTANCE):
        chosen.setdefault((finding.cell_id, finding.arm), finding)
    return list(chosen.values())


def _table(findings: Sequence[Finding], *, is_wide: bool) -> Table:
    table = Table(pad_edge=False)
    table.add_column("verdict", no_wrap=True)
    table.add_column("cell, arm, metric" if not is_wide else "cell", overflow="fold")
    if is_wide:
        table.add_column("arm", no_wrap=True)
        table.add_column("metric")
    table.add_column("why", overflow="fold")
    for finding in findings:
        name = Text(finding.verdict, style=STYLES[finding.verdict])
        place = [finding.cell_id, finding.arm, finding.metric]
        columns = place if is_wide else [" ".join(place)]
        table.add_row(name, *columns, _why(finding))
    return table


def _why(finding: Finding) -> str:
    parts = [finding.reason]
    if finding.mde is not None:
        parts.append(f"smallest detectable {finding.mde:.2%}")
    if finding.questions:
        parts.append(questions_text(finding.questions))
    return "; ".join(parts)
