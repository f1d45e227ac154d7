"""`eaglebench explain`: one question, step by step, in two arms."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglebench.cli.effects import StatedCommand, always
from eaglebench.cli.exit_codes import NOTHING_MEASURED, PASS
from eaglebench.errors import InputFileError, UsageError
from eaglebench.plan.option import Need
from eaglebench.records.knobs import BASELINE_ARM

if TYPE_CHECKING:
    from eaglebench.records.measured import MeasuredRun, MeasuredTurn
    from eaglebench.report.steps import TokenText

_OTHER_ARM = Need("it is the arm itself", lambda given: given["against"] != given["arm"])


@click.command(
    cls=StatedCommand, needs=always("turn", "arm", "output_dir") | {"against": _OTHER_ARM}
)
@click.argument("run")
@click.argument("cell")
@click.argument("question")
@click.option("--turn", type=click.IntRange(min=1), default=1, show_default=True, help="Its turn.")
@click.option("--arm", help="Which arm.  [default: the first that is not the other one]")
@click.option("--against", default=BASELINE_ARM, show_default=True, help="The other arm.")
@click.option("-o", "--output-dir", default="results", show_default=True, help="Where runs are.")
def explain(
    run: str,
    cell: str,
    question: str,
    *,
    turn: int,
    arm: str | None,
    against: str,
    output_dir: str,
) -> int:
    """Show what was drafted, accepted and chosen in every step of QUESTION in CELL of RUN.

    CELL may be a part of its name, if no other cell has it; `-` is the only cell. The first step
    where the two arms part is marked, and the reason stands below.
    """
    from eaglebench.bench.documents import load_run, tau_of
    from eaglebench.cli.console import stdout_console
    from eaglebench.report.steps import render_steps
    from eaglebench.stats.pairing import pair_turns
    from eaglebench.store.run_folder import find_run

    measured = load_run(find_run(Path(output_dir), run))
    cell_id = _cell(measured, cell)
    turns = _turns(measured, cell_id, question, turn)
    chosen = arm or next((name for name in turns if name != against), next(iter(turns)))
    if chosen not in turns:
        raise UsageError(f"no arm {chosen!r} there; there are: {', '.join(turns)}")
    mine, other = turns[chosen], turns.get(against) if against != chosen else None
    tau = tau_of(measured)
    pair = pair_turns([mine], [other], tau)[0] if other is not None and mine.is_measured else None
    text = token_text(str(measured.config["model"]))
    render_steps(mine, other, pair, tau, console=stdout_console(), text=text)
    is_there = any(shown is not None and shown.error is None for shown in (mine, other))
    return PASS if is_there else NOTHING_MEASURED


def token_text(model: str) -> "TokenText":
    """Token ids as quoted text where the model's tokenizer is on this machine, else as numbers."""
    from eaglebench.assets.resolve import local_folder
    from eaglebench.cli.console import notice
    from eaglebench.foreign import foreign_code

    folder = local_folder(model)
    if folder is None or not (folder / "tokenizer.json").is_file():
        return _as_numbers
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    try:
        with foreign_code(lambda reason: InputFileError(path, f"can't be read: {reason}")):
            tokenizer = Tokenizer.from_file(str(path))
    except InputFileError as error:
        notice(f"tokens are shown as numbers: {error.message}")
        return _as_numbers

    def text(token_ids: Sequence[int]) -> str:
        pieces = [tokenizer.decode([i], skip_special_tokens=False) for i in token_ids]
        return " ".join(repr(piece) for piece in pieces)

    return text


def _as_numbers(token_ids: Sequence[int]) -> str:
    return " ".join(map(str, token_ids))


def _cell(run: "MeasuredRun", name: str) -> str:
    cells = list(dict.fromkeys(turn.cell_id for turn in run.turns))
    if name == "-" and len(cells) == 1:
        return cells[0]
    found = [cell for cell in cells if cell == name] or [cell for cell in cells if name in cell]
    if len(found) != 1:
        raise UsageError(
            f"{name!r} names {len(found)} cells of this run; expected one",
            hint=f"cells: {', '.join(cells)}",
        )
    return found[0]


def _turns(run: "MeasuredRun", cell_id: str, question: str, turn: int) -> dict[str, "MeasuredTurn"]:
    """That turn of the first pass by arm."""
    here = [t for t in run.turns if t.cell_id == cell_id and t.pass_index == 0]
    found = {t.arm: t for t in here if (t.question_id, t.turn) == (question, turn - 1)}
    if found:
        return found
    known = list(dict.fromkeys(t.question_id for t in here))
    if question in known:
        number = 1 + max(t.turn for t in here if t.question_id == question)
        raise UsageError(f"question {question} has {number} turns; there is no turn {turn}")
    shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
    raise UsageError(f"no question {question!r} in {cell_id}", hint=f"questions: {shown}")
