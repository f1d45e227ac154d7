"""One turn of a stored run beside its twin, and the tokens of its model as text."""

from collections.abc import Sequence

from eaglebench.assets.resolve import local_folder
from eaglebench.bench.documents import load_run, tau_of
from eaglebench.errors import InputFileError, UsageError
from eaglebench.foreign import foreign_code
from eaglebench.plan.option import Notice
from eaglebench.records.knobs import BASELINE_ARM
from eaglebench.records.measured import MeasuredRun, MeasuredTurn
from eaglebench.records.observation import VerifyStep
from eaglebench.records.words import counted
from eaglebench.report.explained_turn import ExplainedTurn, PartedStep
from eaglebench.report.reading_table import TokenText
from eaglebench.stats.pairing import NOT_PAIRED, Pair, pair_turns
from eaglebench.stats.prefix import common_roots
from eaglebench.stats.provenance import History, Reading
from eaglebench.store.run_folder import RunFolder


def explain_turn(
    folder: RunFolder,
    cell: str,
    question: str,
    turn: int,
    arm: str | None,
    against: str | None,
    *,
    other_folder: RunFolder | None = None,
) -> ExplainedTurn:
    """A turn of the first pass beside its twin.

    Args:
        folder: the run.
        cell: the cell's name, or a part that no other one has; `-` is the only cell.
        question: id of the question.
        turn: from 1.
        arm: None is the first that is not `against`.
        against: the arm it is held against; None is `no-cache`, or in another run the same arm.
        other_folder: the run that holds the twin; None is the same one.

    Raises:
        UsageError: there is no such cell, question, turn or arm; says what there is.
        NothingMeasuredError: the run holds no finished question.
    """
    run = load_run(folder)
    turns = _turns(run, _cell(run, cell), question, turn)
    avoided = against or (BASELINE_ARM if other_folder is None else None)
    chosen = arm or next((name for name in turns if name != avoided), next(iter(turns)))
    if chosen not in turns:
        raise UsageError(f"no arm {chosen!r} there; there are: {', '.join(turns)}")
    mine, tau, labels = turns[chosen], tau_of(run), (chosen, avoided or chosen)
    if other_folder is None:
        other_run, other = run, turns.get(labels[1]) if labels[1] != chosen else None
    else:
        other_run = load_run(other_folder)
        other = _twin(other_run, mine, cell, labels[1])
        tau = tau.wider(tau_of(other_run))
        labels = (f"{labels[0]} of {run.run_id}", f"{labels[1]} of {other_run.run_id}")
    pair = pair_turns([mine], [other], tau)[0] if other is not None and mine.is_measured else None
    parted = _parted(mine, other, pair)
    return ExplainedTurn(
        mine=mine,
        other=other,
        labels=labels,
        pair=pair,
        tau=tau,
        parted=parted,
        readings=_readings(run, mine, other_run, other, parted),
        model=str(run.config["model"]),
    )


def _twin(run: MeasuredRun, mine: MeasuredTurn, cell: str, arm: str) -> MeasuredTurn:
    """The same turn in another run, in the cell of the same name or the one that was named."""
    cells = {turn.cell_id for turn in run.turns}
    cell_id = mine.cell_id if mine.cell_id in cells else _cell(run, cell)
    turns = _turns(run, cell_id, mine.question_id, mine.turn + 1)
    if arm not in turns:
        raise UsageError(f"no arm {arm!r} in run {run.run_id}; there are: {', '.join(turns)}")
    return turns[arm]


def _parted(mine: MeasuredTurn, other: MeasuredTurn | None, pair: Pair | None) -> PartedStep | None:
    """The step to look at: where they part, else the first one with other drafts."""
    if other is None or pair is None or pair.kind in NOT_PAIRED:
        return None
    parting, common = pair.parting, {index for index, _, _ in common_roots(mine, other)}
    if parting is None:
        return next(
            (
                PartedStep("draft", index, step.position, step.position + 1 + node)
                for index, step, theirs in common_roots(mine, other)
                if (node := _other_node(step, theirs)) is not None
            ),
            None,
        )
    if parting.step not in common or parting.position <= mine.steps[parting.step].position:
        return None
    return PartedStep(
        parting.side, parting.step, mine.steps[parting.step].position, parting.position
    )


def _other_node(step: VerifyStep, theirs: VerifyStep) -> int | None:
    """The first proposed token that is another one; of a tree its first, whichever differs."""
    if (step.drafted_ids, step.parents) == (theirs.drafted_ids, theirs.parents):
        return None
    if step.parents or theirs.parents:
        return 0
    both = zip(step.drafted_ids, theirs.drafted_ids, strict=False)
    return next((node for node, (a, b) in enumerate(both) if a != b), 0)


def _readings(
    run: MeasuredRun,
    mine: MeasuredTurn,
    other_run: MeasuredRun,
    other: MeasuredTurn | None,
    parted: PartedStep | None,
) -> tuple[Reading, ...]:
    """What the drafts of the two read in the step where they part."""
    if other is None or parted is None:
        return ()
    theirs = next(n for n, step in enumerate(other.steps) if step.position == parted.root)
    return (
        History(run.turns, mine).reading(parted.step, parted.position),
        History(other_run.turns, other).reading(theirs, parted.position),
    )


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
            f"{name!r} names {counted(len(found), 'cell')} of this run; expected one",
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
        raise UsageError(
            f"question {question} has {counted(number, 'turn')}; there is no turn {turn}"
        )
    shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
    raise UsageError(f"no question {question!r} in {cell_id}", hint=f"questions: {shown}")
