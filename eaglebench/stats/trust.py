"""The one place that says which results of a run can't be trusted, and why.

Notes, exit statuses, baselines and the gate all ask here (`records/doubt.py` names the kinds).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from eaglebench.records.counters import Counters
from eaglebench.records.doubt import EVERYWHERE, Doubt, DoubtKind
from eaglebench.records.knobs import CACHE_ARMS, base_arm
from eaglebench.records.measured import MeasuredRun, MeasuredTurn
from eaglebench.records.words import counted, doing
from eaglebench.stats.acceptance import answered, by_arm, pool

LEAST_STEPS = 32
"""Fewer verify steps say nothing about a drafter."""
IDLE_SHARE = 0.05
"""A drafter that adds fewer tokens a verify step does not draft for this target."""
SHOWN_QUESTIONS = 6
SHOWN_TURNS = 3
_CUT_SHORT: dict[str, tuple[DoubtKind, str]] = {
    "capacity": ("capacity", "were cut short by a full KV pool; raise --max-total-tokens"),
    "aborted": ("aborted", "were aborted"),
}

Place = tuple[str, str]


def doubts_of(run: MeasuredRun) -> list[Doubt]:
    """Everything that speaks against a run, the gravest kinds of each cell and arm first."""
    found = [doubt for place, turns in by_arm(run.turns).items() for doubt in _doubts(place, turns)]
    if not run.turns:
        found.append(_doubt("nothing", (EVERYWHERE, EVERYWHERE), "nothing was measured"))
    if run.status != "done":
        text = f"this run is {run.status}: not every question has been run"
        found.append(_doubt("unfinished", (EVERYWHERE, EVERYWHERE), text))
    return found


def _doubts(place: Place, turns: Sequence[MeasuredTurn]) -> list[Doubt]:
    """Of one cell and arm; counts are those of the first pass, as everywhere."""
    first = [turn for turn in turns if turn.pass_index == 0]
    measured = answered(first)
    found = [*_failed(place, turns), *_cut_short(place, turns)]
    if not measured:
        found.append(_doubt("nothing", place, "no question was answered"))
    elif all(turn.counters.verify_steps == 0 for turn in measured):
        text = (
            "no verify step, so there is no acceptance length; answers end with their first token"
        )
        found.append(_doubt("no-steps", place, text))
    found += _lost_steps(place, measured)
    found += _changed_passes(place, first, turns)
    found += _idle(place, first)
    return found


def _failed(place: Place, turns: Sequence[MeasuredTurn]) -> list[Doubt]:
    failed = [turn for turn in turns if turn.error is not None]
    if not failed:
        return []
    causes = Counter(turn.error or "" for turn in failed).most_common()
    text = f"{len(failed)} of {counted(len(turns), 'turn')} failed: {causes[0][0]}"
    if len(causes) > 1:
        text += f" (and {counted(len(causes) - 1, 'other reason')})"
    return [_doubt("failed", place, text, failed)]


def _cut_short(place: Place, turns: Sequence[MeasuredTurn]) -> list[Doubt]:
    found = []
    for reason, (kind, words) in _CUT_SHORT.items():
        cut = [turn for turn in turns if turn.finish_reason == reason and turn.error is None]
        if cut:
            lengths = [
                f"{t.question_id}/{t.turn + 1} after {len(t.output_token_ids)}"  # people count from 1
                for t in cut
            ]
            shown = ", ".join(lengths[:SHOWN_TURNS]) + (", ..." if len(cut) > SHOWN_TURNS else "")
            text = f"{len(cut)} of {counted(len(turns), 'answer')} {words} ({shown} tokens)"
            found.append(replace(_doubt(kind, place, "", cut), text=text))
    return found


def _lost_steps(place: Place, measured: Sequence[MeasuredTurn]) -> list[Doubt]:
    """Turns know how many verify steps they took; what each of them did is written beside them."""
    told = [turn for turn in measured if turn.accepted_per_step is not None]
    lost = [turn for turn in told if len(turn.steps) < (turn.counters.verify_steps or 0)]
    if not lost:
        return []
    text = (
        f"the verify steps of {len(lost)} of {counted(len(measured), 'turn')} are missing in the "
        "run's folder (steps.jsonl, steps.parquet): positions and near-ties are not known"
    )
    return [_doubt("lost-steps", place, text, lost)]


def _changed_passes(
    place: Place, first: Sequence[MeasuredTurn], turns: Sequence[MeasuredTurn]
) -> list[Doubt]:
    """Every pass starts from empty caches, so it repeats the first one to the last count."""
    by_key = {(turn.question_id, turn.turn): turn for turn in first}
    answers, counts = list[MeasuredTurn](), list[MeasuredTurn]()
    for turn in turns:
        other = by_key.get((turn.question_id, turn.turn))
        if turn.pass_index == 0 or other is None:
            continue
        if (turn.output_token_ids, turn.acceptance) != (
            other.output_token_ids,
            other.acceptance,
        ):
            answers.append(turn)
        elif turn.counters != other.counters:
            counts.append(turn)
    found = []
    if answers:
        text = f"{counted(len(answers), 'answer')} of later passes with other tokens or steps than the first"
        found.append(_doubt("passes", place, text, answers))
    if counts:
        text = f"passes did not start from empty caches: {doing(len(counts), 'turn', 'have')} other counts"
        found.append(_doubt("passes", place, f"{text} ({_cached_text(turns)})", counts))
    return found


def _cached_text(turns: Sequence[MeasuredTurn]) -> str:
    passes = sorted({turn.pass_index for turn in turns})
    cached = [
        Counters.total(turn.counters for turn in turns if turn.pass_index == number).cached_tokens
        for number in passes
    ]
    return f"cached tokens {', '.join(map(str, cached))} by pass"


def _idle(place: Place, turns: Sequence[MeasuredTurn]) -> list[Doubt]:
    """Of arms that should draft well; a planted fault may well not."""
    counts = pool(turns)
    should_draft = base_arm(place[1]) in CACHE_ARMS and any(t.knobs.draft.num_steps for t in turns)
    accepted, steps = counts.accepted, counts.verify_steps
    if not should_draft or accepted is None or steps is None or steps < LEAST_STEPS:
        return []
    if accepted >= IDLE_SHARE * steps:
        return []
    text = (
        f"the drafter accepts next to nothing: {counts.accepted} tokens of {counts.num_drafts} "
        f"drafts in {counts.verify_steps} verify steps (acceptance length {counts.acceptance_length:.3f}; 1 is no drafter)"
    )
    return [_doubt("idle-drafter", place, text)]


def _doubt(kind: DoubtKind, place: Place, text: str, turns: Sequence[MeasuredTurn] = ()) -> Doubt:
    questions = tuple(dict.fromkeys(turn.question_id for turn in turns))
    if questions:
        shown = ", ".join(questions[:SHOWN_QUESTIONS])
        more = ", ..." if len(questions) > SHOWN_QUESTIONS else ""
        text = f"{text} (questions {shown}{more})"
    return Doubt(kind=kind, cell_id=place[0], arm=place[1], text=text, questions=questions)
