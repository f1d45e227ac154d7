"""One block of conversations through one arm, timed, and its records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise

from eaglebench.backends.seam import Backend
from eaglebench.bench.feed import Asked, Feed
from eaglebench.clock import Clock
from eaglebench.errors import BrokenModelError
from eaglebench.plan.conversation import Conversation
from eaglebench.records.counters import Counters
from eaglebench.records.knobs import EngineKnobs
from eaglebench.records.measured import MeasuredBlock, MeasuredTurn
from eaglebench.records.observation import RequestObservation

BLOCK_DEPTH = 8
"""Conversations for each place in a batch; with 8 the last ones that run alone cost a few per cent."""


@dataclass(frozen=True, slots=True)
class Block:
    """Conversations that run together; `number` counts from 0 within a cell.

    `digests` are those of their questions (`bench/prompts.py`), by question id.
    """

    number: int
    conversations: tuple[Conversation, ...]
    digests: Mapping[str, str] = field(default_factory=dict)


def make_blocks(
    conversations: Sequence[Conversation],
    parallel: int,
    digests: Mapping[str, str],
    depth: int = BLOCK_DEPTH,
) -> list[Block]:
    """Conversations in their order: one a block, or in a batch so many that it stays full.

    A block is fed continuously and drains once, at its end, so a batch gets blocks of at least
    `depth` times its size, as equal as can be; all in one where there are too few for two.
    """
    total = len(conversations)
    count = total if parallel == 1 else max(1, total // (depth * parallel))
    bounds = [total * number // count for number in range(count + 1)] if total else [0]
    return [
        Block(number, tuple(conversations[start:end]), digests)
        for number, (start, end) in enumerate(pairwise(bounds))
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a block's records belong.

    `pass_index` is the pass over the questions, from 0; `order` the arm's place within its block.
    `arm` names the records; it is the knobs' arm unless an arm is measured against itself.
    `window` is what window layers see; None where all layers see everything.
    """

    run_id: str
    cell_id: str
    arm: str
    knobs: EngineKnobs
    pass_index: int
    order: int
    window: int | None
    dtype: str
    device: str
    temperature: float
    seed: int


@dataclass(frozen=True, slots=True)
class DoneBlock:
    """The records of a finished block."""

    turns: list[MeasuredTurn]
    record: MeasuredBlock

    def check(self) -> None:
        """Refuse to go on after a turn that failed while it ran; one that was refused did not run.

        Raises:
            BrokenModelError: there is such a turn.
        """
        for turn in self.turns:
            if turn.error is not None and turn.counters.target_forwards:
                raise BrokenModelError(
                    f"question {turn.question_id}, turn {turn.turn + 1}, {turn.arm}: {turn.error}",
                    hint="look at the weights and the dtype; --continue-on-error records such "
                    "turns as failed and goes on",
                )


def run_block(
    block: Block, place: Place, *, feed: Feed, backend: Backend, clock: Clock
) -> DoneBlock:
    """Run a block. Only generation lies between the two readings of the clock."""
    done: list[tuple[RequestObservation, Asked]] = []
    backend.take_step_times()
    started_s = clock.now_s()
    for observation in backend.generate(feed, feed.replayed_tokens):
        done.append((observation, feed.answer(observation)))  # noqa: PERF401  # the feed needs it now
    wall_s = clock.now_s() - started_s
    times = backend.take_step_times()
    counters = Counters.total(observation.counters for observation, _ in done)
    record = MeasuredBlock(
        cell_id=place.cell_id,
        arm=place.arm,
        pass_index=place.pass_index,
        block=block.number,
        order=place.order,
        question_ids=tuple(talk.question_id for talk in block.conversations),
        output_tokens=counters.output_tokens,
        verify_steps=counters.verify_steps,
        num_turns=len(done),
        parallel=place.knobs.parallel,
        wall_s=wall_s,
        times=times,
    )
    return DoneBlock([_turn(block, place, *each) for each in done], record)


def _turn(
    block: Block, place: Place, observation: RequestObservation, asked: Asked
) -> MeasuredTurn:
    talk = asked.conversation
    return MeasuredTurn(
        **{each.name: getattr(observation, each.name) for each in fields(RequestObservation)},
        run_id=place.run_id,
        cell_id=place.cell_id,
        arm=place.arm,
        pass_index=place.pass_index,
        block=block.number,
        order_in_block=place.order,
        question_id=talk.question_id,
        turn=asked.turn,
        category=talk.category,
        is_measured=talk.turns[asked.turn].measured,
        knobs=place.knobs,
        window=place.window,
        dtype=place.dtype,
        device=place.device,
        temperature=place.temperature,
        seed=place.seed,
        prompt_token_ids=tuple(asked.prompt_token_ids),
        question_sha256=block.digests.get(talk.question_id),
    )
