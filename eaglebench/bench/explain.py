"""One turn of a stored run in two arms, and the tokens of its model as text."""

from collections.abc import Sequence
from dataclasses import dataclass

from eaglebench.assets.resolve import local_folder
from eaglebench.bench.documents import load_run, tau_of
from eaglebench.errors import InputFileError, UsageError
from eaglebench.foreign import foreign_code
from eaglebench.plan.option import Notice
from eaglebench.records.measured import MeasuredRun, MeasuredTurn
from eaglebench.report.side_by_side import TokenText
from eaglebench.stats.pairing import Pair, pair_turns
from eaglebench.stats.tau import Tau
from eaglebench.store.run_folder import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedTurn:
    """A turn beside its twin in another arm.

    Attributes:
        mine: the turn.
        other: the same turn in the other arm, where it ran.
        pair: how the two relate; None where one of them is not measured.
        tau: the near-tie thresholds of the run.
        model: name of the target.
    """

    mine: MeasuredTurn
    other: MeasuredTurn | None
    pair: Pair | None
    tau: Tau
    model: str

    @property
    def is_measured(self) -> bool:
        """Whether one of the two was answered without a failure."""
        return any(turn is not None and turn.error is None for turn in (self.mine, self.other))


def explain_turn(
    folder: RunFolder, cell: str, question: str, turn: int, arm: str | None, against: str
) -> ExplainedTurn:
    """A turn of the first pass.

    Args:
        folder: the run.
        cell: the cell's name, or a part that no other one has; `-` is the only cell.
        question: id of the question.
        turn: from 1.
        arm: None is the first that is not `against`.
        against: the arm it is held against.

    Raises:
        UsageError: there is no such cell, question, turn or arm; says what there is.
        NothingMeasuredError: the run holds no finished question.
    """
    run = load_run(folder)
    turns = _turns(run, _cell(run, cell), question, turn)
    chosen = arm or next((name for name in turns if name != against), next(iter(turns)))
    if chosen not in turns:
        raise UsageError(f"no arm {chosen!r} there; there are: {', '.join(turns)}")
    mine, other = turns[chosen], turns.get(against) if against != chosen else None
    tau = tau_of(run)
    pair = pair_turns([mine], [other], tau)[0] if other is not None and mine.is_measured else None
    return ExplainedTurn(mine=mine, other=other, pair=pair, tau=tau, model=str(run.config["model"]))


def token_text(model: str, *, notice: Notice) -> TokenText:
    """Token ids as quoted text where the model's tokenizer is on this machine, else as numbers."""
    folder = local_folder(model)
    if folder is None or not (folder / "tokenizer.json").is_file():
        return _as_numbers
    from tokenizers import Tokenizer  # noqa: PLC0415  # only where there is one to be read

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


def _cell(run: MeasuredRun, name: str) -> str:
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


def _turns(run: MeasuredRun, cell_id: str, question: str, turn: int) -> dict[str, MeasuredTurn]:
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
