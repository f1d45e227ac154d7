"""What an interrupted run has finished, and how its caches are brought back.

A block counts as finished when its own line, all its turns and all their verify steps are on disk;
anything less runs again, and the new lines replace the old ones.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from eaglebench.contracts.backend import Backend
from eaglebench.contracts.generation import GenerationRequest
from eaglebench.contracts.knobs import base_arm
from eaglebench.harness.block import Block
from eaglebench.store.records import TurnRecord
from eaglebench.store.run_folder import RunFolder

_NOTHING_SHARED = {"no-cache", "force-miss"}


@dataclass(frozen=True, slots=True)
class Finished:
    """Finished blocks by cell, arm, round and number, and the turns in them."""

    blocks: dict[tuple[str, str, int, int], frozenset[str]]
    turns: tuple[TurnRecord, ...]

    @classmethod
    def read(cls, folder: RunFolder) -> "Finished":
        """What a folder holds."""
        steps = folder.steps()
        whole = tuple(
            turn for turn in folder.turns() if len(steps.get(turn.key, ())) == turn.verify_steps
        )
        delivered: Counter[tuple[str, str, int, str]] = Counter()
        for turn in whole:
            delivered[turn.cell_id, turn.arm, turn.round, turn.question_id] += turn.output_tokens
        blocks: dict[tuple[str, str, int, int], frozenset[str]] = {}
        for block in folder.blocks():
            keys = [(block.cell_id, block.arm, block.round, name) for name in block.question_ids]
            tokens = sum(delivered[key] for key in keys if key in delivered)
            if all(key in delivered for key in keys) and tokens == block.output_tokens:
                place = (block.cell_id, block.arm, block.round, block.block)
                blocks[place] = frozenset(block.question_ids)
        return cls(blocks, whole)

    def has_block(self, cell_id: str, arm: str, round_number: int, block: Block) -> bool:
        """Whether a block of exactly these questions is there."""
        asked = frozenset(talk.question_id for talk in block.conversations)
        return self.blocks.get((cell_id, arm, round_number, block.number)) == asked

    def turns_of(self, cell_id: str, arm: str, round_number: int) -> list[TurnRecord]:
        """Turns of the finished blocks of an arm's round, in the order in which they ended."""
        wanted = (cell_id, arm, round_number)
        done = {
            name for place, names in self.blocks.items() if place[:3] == wanted for name in names
        }
        return [
            turn
            for turn in self.turns
            if (turn.cell_id, turn.arm, turn.round) == wanted and turn.question_id in done
        ]


def prime(backend: Backend, turns: Sequence[TurnRecord], arm: str) -> None:
    """Fill a fresh cache with what finished turns left in it, so that later hits are the same.

    Each turn's tokens are computed once more as a prompt; the last one, whose KV was never
    written, is replayed as its only answer.
    """
    if base_arm(arm) in _NOTHING_SHARED or not turns:
        return
    ran = [turn for turn in turns if turn.output_token_ids]
    for number, turn in enumerate(ran):  # one after another: two that run together can't share
        request = GenerationRequest(
            request_id=f"prime/{number}",
            prompt_token_ids=(*turn.prompt_token_ids, *turn.output_token_ids[:-1]),
            max_new_tokens=1,
        )
        for _ in backend.generate([request], {request.request_id: turn.output_token_ids[-1:]}):
            pass
    backend.take_step_times()
