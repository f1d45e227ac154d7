"""What an interrupted run has finished, and whether it can be gone on with.

A block counts as finished when its own line, all its turns and all their verify steps are on disk;
anything less runs again, and the new lines replace the old ones.

A resumed run is the run that was not interrupted. What finished blocks left in caches and pools is
not on disk, so they are gone through once more, exactly as they ran: same requests, same batches,
same order. Nothing of that is recorded; it has to come out as it stands there.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from eaglebench.bench.block import Block
from eaglebench.errors import UsageError
from eaglebench.records.digests import shown
from eaglebench.records.knobs import BASELINE_ARM, base_arm
from eaglebench.records.measured import MeasuredTurn
from eaglebench.records.words import doing
from eaglebench.store.run_folder import RunFolder

_NOT_REPEATED = {
    *("times", "prefill_gap", "run_id", "request_id"),
    "steps",  # they are no part of a stored turn
    *("counters", "knobs"),  # each of them is looked at by its name
}
"""Fields of a turn that may differ when it runs again; everything else is exact."""
_SHOWN = 8
_NONE = "not recorded"
BlockPlace = tuple[str, str, int, int]


def keeps_nothing(arm: str) -> bool:
    """Whether a block of this arm leaves nothing behind that a later one could meet."""
    return base_arm(arm) == BASELINE_ARM


@dataclass(frozen=True, slots=True)
class Finished:
    """Finished blocks by cell, arm, pass and number, and the turns in them."""

    blocks: dict[BlockPlace, frozenset[str]]
    turns: dict[BlockPlace, dict[tuple[str, int], MeasuredTurn]]

    @classmethod
    def read(cls, folder: RunFolder) -> "Finished":
        """What a folder holds."""
        steps = folder.steps()
        whole = [
            turn
            for turn in folder.turns()
            if turn.accepted_per_step is None  # totals alone; there are no steps to lose
            or turn.counters.verify_steps in (None, len(steps.get(turn.key, ())))
        ]
        delivered: Counter[tuple[str, str, int, str]] = Counter()
        turns: dict[BlockPlace, dict[tuple[str, int], MeasuredTurn]] = {}
        for turn in whole:
            delivered[turn.cell_id, turn.arm, turn.pass_index, turn.question_id] += (
                turn.counters.output_tokens
            )
            place = (turn.cell_id, turn.arm, turn.pass_index, turn.block)
            turns.setdefault(place, {})[turn.question_id, turn.turn] = turn
        blocks: dict[BlockPlace, frozenset[str]] = {}
        for block in folder.blocks():
            keys = [
                (block.cell_id, block.arm, block.pass_index, name) for name in block.question_ids
            ]
            tokens = sum(delivered[key] for key in keys if key in delivered)
            place = (block.cell_id, block.arm, block.pass_index, block.block)
            there = len(turns.get(place, ()))
            is_whole = tokens == block.output_tokens and there == (block.num_turns or there)
            if is_whole and all(key in delivered for key in keys):
                blocks[place] = frozenset(block.question_ids)
        return cls(blocks, turns)

    def has_block(self, cell_id: str, arm: str, pass_index: int, block: Block) -> bool:
        """Whether a block of exactly these questions is there."""
        asked = frozenset(talk.question_id for talk in block.conversations)
        return self.blocks.get((cell_id, arm, pass_index, block.number)) == asked

    def check_questions(self, cell_id: str, digests: Mapping[str, str]) -> None:
        """Go on only with the questions that were asked before.

        Raises:
            UsageError: some ask something else under the same id; named.
        """
        others = {
            turn.question_id: None
            for place, turns in self.turns.items()
            if place[0] == cell_id
            for turn in turns.values()
            if turn.question_sha256 != digests.get(turn.question_id, turn.question_sha256)
        }
        if others:
            shown = ", ".join(list(others)[:_SHOWN]) + (", ..." if len(others) > _SHOWN else "")
            raise UsageError(
                f"{doing(len(others), 'question', 'ask')} something else than when the run began: {shown}",
                hint="texts, chat template or tokenizer changed; start the run anew",
            )

    def check_again(self, place: BlockPlace, again: Sequence[MeasuredTurn]) -> None:
        """Hold a block that was gone through once more against what is on disk.

        Raises:
            UsageError: it came out otherwise, so what follows would not be the same run.
        """
        stored = self.turns[place]
        for turn in again:
            before = stored.get((turn.question_id, turn.turn))
            differing = _differing(before, turn)
            if differing:
                raise UsageError(
                    f"the run can't be gone on with: question {turn.question_id} in {place[0]} "
                    f"{place[1]} did not come out as before ({', '.join(differing)})",
                    hint="start it anew; what is on disk can be shown",
                )


def _differing(before: MeasuredTurn | None, after: MeasuredTurn) -> list[str]:
    """Names of fields that are not what they were."""
    if before is None:
        return ["it was not there"]
    then, now = (
        {each.name: getattr(turn, each.name) for each in fields(turn)}
        | {f"knobs.{name}": value for name, value in asdict(turn.knobs).items()}
        | turn.counters.as_dict()
        for turn in (before, after)
    )
    return [name for name in then if name not in _NOT_REPEATED and then[name] != now[name]]


def obstacles(
    before: Mapping[str, Any],
    before_environment: Mapping[str, Any],
    now: Mapping[str, Any],
    now_environment: Mapping[str, Any],
) -> list[str]:
    """Why a run can't be gone on with here; empty where nothing that decides a count differs.

    Manifests (`run.json`) and fingerprints (`environment.json`) are the stored ones and those that
    a new run would have here.
    """
    facts = [
        ("eaglebench's code", _code(before), _code(now)),
        ("suite", before["suite"].get("sha256"), now["suite"].get("sha256")),
        (
            "file of questions",
            before["suite"].get("questions_sha256"),
            now["suite"].get("questions_sha256"),
        ),
    ]
    exact, here = before_environment.get("exact", {}), now_environment.get("exact", {})
    facts += [(name, exact.get(name), here.get(name)) for name in sorted({*exact, *here})]
    return [
        f"{name}: {shown(then, none=_NONE)} when it began, {shown(mine, none=_NONE)} now"
        for name, then, mine in facts
        if then != mine
    ]


def _code(manifest: Mapping[str, Any]) -> str | None:
    return manifest.get("code_sha256")
