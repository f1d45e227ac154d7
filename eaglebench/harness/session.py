"""Run a plan: every cell, every arm, block by block, and write down what happened.

A block is `parallel` conversations (one question at parallel 1). Each block goes through every arm
before the next block starts, and the order of arms turns round from block to block (A B, B A), so
that a drift of the machine meets all arms alike. Results are on disk when a block ends.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from eaglebench.clock import Clock
from eaglebench.contracts.backend import Backend, Runtime
from eaglebench.contracts.generation import GenerationRequest
from eaglebench.contracts.knobs import EngineKnobs
from eaglebench.errors import NothingMeasuredError, UsageError
from eaglebench.harness.feed import AnswerRule, Feed, prompt_token_ids, request_name
from eaglebench.harness.progress import Progress
from eaglebench.plan.cell import Cell
from eaglebench.plan.conversation import Conversation
from eaglebench.plan.replay import Replay
from eaglebench.plan.run_config import RunConfig
from eaglebench.store.encode import step_records, turn_record
from eaglebench.store.records import BlockRecord, StepRecord, TurnRecord
from eaglebench.store.run_folder import RunFolder

WARMUP_TEXT = "Count slowly from one to twenty, and then back again."
WARMUP_TOKENS = 16
NOISE_PROMPTS = 3
TAU_FACTOR = 10
"""A gap below ten times the logit noise is a near-tie."""

ConversationsOf = Callable[[Cell], Sequence[Conversation]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """What a session runs."""

    config: RunConfig
    cells: tuple[Cell, ...]
    conversations_of: ConversationsOf
    replay: Replay | None = None


@dataclass(frozen=True, slots=True)
class _Block:
    number: int
    conversations: tuple[Conversation, ...]
    arms: tuple[str, ...]


class Session:
    """One run on one runtime into one folder."""

    def __init__(
        self,
        plan: SessionPlan,
        runtime: Runtime,
        folder: RunFolder,
        *,
        progress: Progress,
        clock: Clock,
    ) -> None:
        self.plan = plan
        self.config = plan.config
        self.runtime = runtime
        self.folder = folder
        self.progress = progress
        self.clock = clock
        self._done = _finished(folder)

    def run(self) -> None:
        """Run what is not on disk yet.

        Raises:
            UsageError: a prompt can't run at all; nothing has been computed then.
            NothingMeasuredError: there is no question.
        """
        work = [(cell, self._conversations(cell)) for cell in self.plan.cells]
        if not any(conversations for _, conversations in work):
            raise NothingMeasuredError("there is no question to run")
        for cell, conversations in work:
            self._check_prompts(cell, conversations)
        arms = self.config.arms
        left = sum(
            not self._is_done(cell, arm, talk)
            for cell, talks in work
            for talk in talks
            for arm in arms
        )
        self.progress.start(left)
        for cell, conversations in work:
            self._run_cell(cell, conversations)

    def tau(self) -> dict[str, float]:
        """Near-tie thresholds, from the logit noise over this run's first prompts."""
        conversations = self._conversations(self.plan.cells[0])[:NOISE_PROMPTS]
        prompts = [prompt_token_ids(talk, 0, (), self.runtime.tokenizer) for talk in conversations]
        noise = self.runtime.measure_noise([prompt for prompt in prompts if len(prompt) > 1])
        return {"target": TAU_FACTOR * noise.target, "draft": TAU_FACTOR * noise.draft}

    # --- a cell -------------------------------------------------------------------------------

    def _run_cell(self, cell: Cell, conversations: Sequence[Conversation]) -> None:
        todo = [
            block
            for block in self._blocks(cell, conversations)
            if any(self._left(cell, arm, block) for arm in block.arms)
        ]
        if not todo:
            return
        with self._backends(cell) as backends:
            for block in todo:
                for order, arm in enumerate(block.arms):
                    talks = self._left(cell, arm, block)
                    if talks:
                        self._run_block(cell, arm, backends[arm], block.number, order, talks)

    def _blocks(self, cell: Cell, conversations: Sequence[Conversation]) -> Iterator[_Block]:
        size = cell.knobs.parallel
        arms = self.config.arms
        for number, start in enumerate(range(0, len(conversations), size)):
            turned = arms if (number + self.config.seed) % 2 == 0 else arms[::-1]
            yield _Block(number, tuple(conversations[start : start + size]), turned)

    @contextmanager
    def _backends(self, cell: Cell) -> Iterator[dict[str, Backend]]:
        backends: dict[str, Backend] = {}
        try:
            for arm in self.config.arms:
                backends[arm] = self.runtime.backend(cell.for_arm(arm))
                self._warm_up(backends[arm])
            yield backends
        finally:
            for backend in backends.values():
                backend.close()

    def _warm_up(self, backend: Backend) -> None:
        """A prompt outside every suite; its KV, counts and times are forgotten."""
        prompt = tuple(self.runtime.tokenizer.encode(WARMUP_TEXT))
        for number in range(self.config.warmup):
            request = GenerationRequest(
                request_id=f"warm-up/{number}",
                prompt_token_ids=prompt,
                max_new_tokens=WARMUP_TOKENS,
            )
            for _ in backend.generate([request]):
                pass
        backend.reset()

    # --- a block ------------------------------------------------------------------------------

    def _run_block(
        self,
        cell: Cell,
        arm: str,
        backend: Backend,
        number: int,
        order: int,
        talks: Sequence[Conversation],
    ) -> None:
        feed = Feed(talks, self.runtime.tokenizer, self._rule())
        knobs = cell.for_arm(arm)
        turns: list[TurnRecord] = []
        steps: list[StepRecord] = []
        backend.take_step_times()
        with _quiet_collector():
            started_s = self.clock.now_s()
            for observation in backend.generate(feed, self._replay_of(talks)):
                asked = feed.answer(observation)
                turns.append(
                    turn_record(
                        observation,
                        knobs=knobs,
                        prompt_token_ids=asked.prompt_token_ids,
                        **self._where(cell, asked.conversation, asked.turn, number, order),
                    )
                )
                steps += step_records(
                    observation,
                    cell_id=cell.cell_id,
                    arm=arm,
                    question_id=asked.conversation.question_id,
                    turn=asked.turn,
                )
            wall_s = self.clock.now_s() - started_s
        block = BlockRecord(
            cell_id=cell.cell_id,
            arm=arm,
            block=number,
            order=order,
            question_ids=[talk.question_id for talk in talks],
            output_tokens=sum(turn.output_tokens for turn in turns),
            wall_s=wall_s,
            **asdict(backend.take_step_times()),
        )
        self.folder.append(turns, steps, block)
        self.progress.advance(
            cell.cell_id, arm, len(talks), block.output_tokens / wall_s if wall_s > 0 else 0.0
        )

    def _where(
        self, cell: Cell, talk: Conversation, turn: int, number: int, order: int
    ) -> dict[str, object]:
        info = self.runtime.info
        return {
            "run_id": self.folder.run_id,
            "cell_id": cell.cell_id,
            "round": number,
            "order_in_round": order,
            "question_id": talk.question_id,
            "turn": turn,
            "category": talk.category,
            "measured": talk.turns[turn].measured,
            "dtype": info.dtype,
            "device": info.device,
            "temperature": self.config.temperature,
            "seed": self.config.seed,
        }

    def _rule(self) -> AnswerRule:
        return AnswerRule(
            max_new_tokens=self.config.max_new_tokens,
            stop_token_ids=() if self.config.ignore_eos else self.runtime.info.stop_token_ids,
            stop_strings=tuple(self.config.stop),
        )

    def _replay_of(self, talks: Sequence[Conversation]) -> Mapping[str, Sequence[int]] | None:
        if self.plan.replay is None:
            return None
        return {
            request_name(talk.question_id, turn): stored.output_token_ids
            for talk in talks
            for turn in range(len(talk.turns))
            if (stored := self.plan.replay.get((talk.question_id, turn))) is not None
        }

    # --- what is there ------------------------------------------------------------------------

    def _conversations(self, cell: Cell) -> list[Conversation]:
        """Conversations of a cell; under a replay only those that were stored whole."""
        made = list(self.plan.conversations_of(cell))
        replay = self.plan.replay
        if replay is None:
            return made
        return [
            talk
            for talk in made
            if all((talk.question_id, turn) in replay for turn in range(len(talk.turns)))
        ]

    def _check_prompts(self, cell: Cell, conversations: Sequence[Conversation]) -> None:
        """Refuse first prompts that can't run, with both numbers, before anything is computed."""
        limit = _prompt_limit(cell.knobs, self.runtime.info.context_length)
        for talk in conversations:
            num_tokens = len(prompt_token_ids(talk, 0, (), self.runtime.tokenizer))
            if num_tokens == 0:
                raise UsageError(f"question {talk.question_id}: the prompt has no tokens")
            if num_tokens > limit and not self.config.continue_on_error:
                raise UsageError(
                    f"question {talk.question_id}: the prompt has {num_tokens} tokens; the pool "
                    f"and the context leave room for {limit}",
                    hint="raise --max-total-tokens or --context-length, or pass "
                    "--continue-on-error to leave such questions out",
                )

    def _left(self, cell: Cell, arm: str, block: _Block) -> list[Conversation]:
        return [talk for talk in block.conversations if not self._is_done(cell, arm, talk)]

    def _is_done(self, cell: Cell, arm: str, talk: Conversation) -> bool:
        return (cell.cell_id, arm, talk.question_id) in self._done


def _finished(folder: RunFolder) -> set[tuple[str, str, str]]:
    """Questions whose block was written to the end."""
    return {
        (block.cell_id, block.arm, question_id)
        for block in folder.blocks()
        for question_id in block.question_ids
    }


def _prompt_limit(knobs: EngineKnobs, model_limit: int) -> int:
    """Longest prompt that leaves room for one verify step."""
    context = min(knobs.context_length or model_limit, model_limit)
    one_more = 1  # the first output token
    return min(context - one_more, knobs.max_total_tokens - knobs.num_draft_nodes - one_more)


@contextmanager
def _quiet_collector() -> Iterator[None]:
    """Keep the garbage collector out of a measured block."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
