"""One turn in two arms, step by step, and the first step where they part."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eaglebench.records.measured import MeasuredTurn
from eaglebench.records.observation import VerifyStep
from eaglebench.stats.pairing import NOT_PAIRED, Pair
from eaglebench.stats.tau import Tau

TokenText = Callable[[Sequence[int]], str]
_CAUSES = {
    "draft": "the head proposed another token from the same beginning",
    "target": "the target itself chose another token",
}


def render_steps(
    mine: MeasuredTurn,
    other: MeasuredTurn | None,
    pair: Pair | None,
    tau: Tau,
    *,
    console: Console,
    text: TokenText,
) -> None:
    """Print the steps of a turn, beside those of another arm that start at the same position."""
    parted = None
    if pair is not None and pair.parting is not None and pair.parting.step < len(mine.steps):
        parted = mine.steps[pair.parting.step].position
    console.print(_head(mine, other))
    table = Table(pad_edge=False)
    for name in ("position", mine.arm, "acc.", *((other.arm, "acc.") if other else ())):
        numeric = name in {"position", "acc."}
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    left = {step.position: step for step in mine.steps}
    right = {step.position: step for step in other.steps} if other else {}
    for position in sorted({*left, *right}):
        cells = [str(position), *_cells(left.get(position), text)]
        if other is not None:
            cells += _cells(right.get(position), text)
        table.add_row(*cells, style="bold red" if position == parted else None)
    console.print(table)
    if other is not None and pair is not None:
        console.print(Text(explanation(pair, other.arm, tau)))


def explanation(pair: Pair, other_arm: str, tau: Tau) -> str:
    """Where two arms first part and why, in a sentence."""
    if pair.kind == "identical":
        return f"identical to {other_arm}: the same tokens, accepted in the same steps"
    if pair.kind in NOT_PAIRED:
        reason = {
            "failed": "the turn failed in one of them",
            "other-prompts": "the question asks something else there",
            "diverged-prompt": "an earlier answer differed, so the prompts do",
        }[pair.kind]
        return f"not paired with {other_arm}: {reason}"
    if pair.parting is None:
        return f"{pair.kind}: accepted in other steps than in {other_arm}, though all choices agree"
    parting = pair.parting
    limit = tau.limit(parting.side, parting.levels)
    if tau.knows_swings(parting.side):
        apart = f"the two choices led by {parting.swing:.3g} together (the closer one by "
        apart += f"{parting.gap:.3g})"
    else:
        apart = f"its two best logits were {parting.gap:.3g} apart"
    return (
        f"{pair.kind}: parts from {other_arm} at step {parting.step}, position {parting.position}: "
        f"{_CAUSES[parting.side]}; {apart}, "
        f"{'less' if pair.kind == 'near-tie' else 'more'} than the near-tie threshold {limit:.3g}"
    )


def _head(mine: MeasuredTurn, other: MeasuredTurn | None) -> str:
    asked = f"question {mine.question_id} turn {mine.turn + 1}, {mine.cell_id}"
    return "\n".join([asked, _summary(mine), *([_summary(other)] if other else [])])


def _summary(turn: MeasuredTurn) -> str:
    counters = turn.counters
    if turn.error is not None:
        return f"{turn.arm}: prompt {counters.prompt_tokens} tokens; failed: {turn.error}"
    return (
        f"{turn.arm}: prompt {counters.prompt_tokens} tokens, {counters.cached_tokens} cached; "
        f"output {counters.output_tokens} tokens in {counters.verify_steps} verify steps"
    )


def _cells(step: VerifyStep | None, text: TokenText) -> list[str]:
    """Drafted tokens and the target's choice behind the accepted ones; accepted of drafted."""
    if step is None:
        return ["", ""]
    choice = step.target_ids[step.accepted : step.accepted + 1]
    shown = f"{text(step.drafted_ids)} | {text(choice)}"
    return [shown, f"{step.accepted}/{len(step.drafted_ids)}"]
