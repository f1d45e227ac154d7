"""Run a plan: every cell, every arm, block by block, and write down what happened.

A block is one conversation, or as many as keep a batch full (`bench/block.py`). Each block goes through every arm
before the next block starts, and the order of arms turns round from block to block (A B, B A), so
that a drift of the machine meets all arms alike. Results are on disk when a block ends.

A pass is one sweep over all questions, from empty caches. Passes repeat until the smallest number
is reached and times are precise enough, or the largest number is reached. A pass of every cell is
run before the next one, and their order turns round as well, so that passes of two cells can be
paired too.
"""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from eaglebench.backends.seam import Backend, Runtime
from eaglebench.bench.block import BLOCK_DEPTH, Block, DoneBlock, Place, make_blocks, run_block
from eaglebench.bench.feed import AnswerRule, Feed
from eaglebench.bench.prompt_check import check_prompts
from eaglebench.bench.prompts import first_prompt, question_digest
from eaglebench.bench.resume import Finished, keeps_nothing
from eaglebench.clock import Clock
from eaglebench.errors import NothingMeasuredError, UsageError
from eaglebench.plan.cell import Cell
from eaglebench.plan.conversation import Conversation
from eaglebench.plan.replay import Replay
from eaglebench.plan.run_config import RunConfig
from eaglebench.progress import Progress
from eaglebench.records.generation import GenerationRequest, Sampling
from eaglebench.records.models import NumericNoise
from eaglebench.store.run_folder import RunFolder

WARMUP_TEXT = "Count slowly from one to twenty, and then back again."
WARMUP_TOKENS = 16
NOISE_PROMPTS = 3
_YOUNG = 1
"""What a block leaves behind is in the collector's two young generations; a full walk is slow."""

ConversationsOf = Callable[[Cell], Sequence[Conversation]]
Work = tuple[Cell, Sequence[Conversation]]
Digests = Mapping[str, str]
IsPrecise = Callable[[RunFolder, str], bool]
"""Whether a cell's times need no further pass; sees interval widths only, never verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWork:
    """What a session runs."""

    config: RunConfig
    cells: tuple[Cell, ...]
    conversations_of: ConversationsOf
    replay: Replay | None = None
    is_precise: IsPrecise = lambda _folder, _cell_id: True
    block_depth: int = BLOCK_DEPTH


@dataclass(frozen=True, slots=True)
class _Task:
    """A block through an arm; one that `is_stored` is only gone through again, for its traces."""

    block: Block
    place: Place
    is_stored: bool


@dataclass(frozen=True, slots=True)
class _Due:
    """What is left of one pass of one cell; nothing, or its last block of some arm is new."""

    cell: Cell
    pass_index: int
    tasks: list[_Task]


class Session:
    """One run on one runtime into one folder."""

    def __init__(
        self,
        work: SessionWork,
        runtime: Runtime,
        folder: RunFolder,
        *,
        progress: Progress,
        clock: Clock,
    ) -> None:
        self.work = work
        self.config = work.config
        self.runtime = runtime
        self.folder = folder
        self.progress = progress
        self.clock = clock
        self._finished = Finished.read(folder)
        self._digests: dict[str, Digests] = {}
        self._digest_of: dict[Conversation, str] = {}

    def run(self) -> None:
        """Run what is not on disk yet.

        Raises:
            UsageError: a cell or a prompt can't run at all; nothing has been computed then.
            NothingMeasuredError: there is no question.
            BrokenModelError: a turn failed while it ran, and the run was not asked to go on.
        """
        asked = [(cell, self._conversations(cell)) for cell in self.work.cells]
        if not any(conversations for _, conversations in asked):
            raise NothingMeasuredError(
                "there is no question to run",
                hint=None if self.work.replay is None else "the replay holds none of the questions",
            )
        for cell, conversations in asked:
            self._check_window(cell)
            check_prompts(
                conversations,
                cell.knobs,
                self.runtime,
                self.work.replay,
                max_new_tokens=self.config.max_new_tokens,
                may_fail=self.config.continue_on_error,
            )
            self._digests[cell.cell_id] = self._question_digests(conversations)
            self._finished.check_questions(cell.cell_id, self._digests[cell.cell_id])
        least = range(self.config.pass_range.least)
        self.progress.stage(
            "questions",
            sum(
                _size(self._tasks(cell, talks, number)) for cell, talks in asked for number in least
            ),
        )
        with _frozen_heap():
            for cell, passes in groupby(self._passes(asked), key=lambda due: due.cell):
                self._run_cell(cell, passes)

    def noise(self) -> NumericNoise:
        """What other matrix shapes do to logits, over this run's first prompts."""
        conversations = self._conversations(self.work.cells[0])[:NOISE_PROMPTS]
        tokenizer, replay = self.runtime.tokenizer, self.work.replay
        prompts = [first_prompt(talk, tokenizer, replay) for talk in conversations]
        return self.runtime.measure_noise([prompt for prompt in prompts if len(prompt) > 1])

    # --- a cell -------------------------------------------------------------------------------

    def _passes(self, work: Sequence[Work]) -> Iterator[_Due]:
        """What is left of each pass that is needed, a pass of every cell before the next one.

        Whether a pass is needed is asked when it is due. Only one cell's pools are held at a time.
        """
        passes = self.config.pass_range
        for number in range(passes.most):
            if number >= passes.least:
                work = [due for due in work if not self._is_precise(due[0])]
            for cell, conversations in work[::-1] if number % 2 else work:
                tasks = self._tasks(cell, conversations, number)
                if number >= passes.least:
                    self.progress.extend(_size(tasks))
                if tasks:
                    yield _Due(cell, number, tasks)

    def _is_precise(self, cell: Cell) -> bool:
        return self.work.is_precise(self.folder, cell.cell_id)

    def _run_cell(self, cell: Cell, passes: Iterable[_Due]) -> None:
        """Passes of one cell that follow each other."""
        with self._backends(cell) as backends:
            for due in passes:
                for backend in backends.values():
                    backend.reset()
                again = sum(task.is_stored for task in due.tasks)
                if again:
                    self.progress.note(
                        f"{cell.cell_id}: going through {again} finished blocks once more, so that "
                        "caches are what they were"
                    )
                for task in due.tasks:
                    run = self._run_again if task.is_stored else self._run_block
                    run(task.block, task.place, backends[task.place.arm])

    def _answer(self, block: Block, place: Place, backend: Backend) -> DoneBlock:
        feed = Feed(block.conversations, self.runtime.tokenizer, self._rule(), self.work.replay)
        with _quiet_collector():
            return run_block(block, place, feed=feed, backend=backend, clock=self.clock)

    def _run_again(self, block: Block, place: Place, backend: Backend) -> None:
        done = self._answer(block, place, backend)
        self._finished.check_again(
            (place.cell_id, place.arm, place.pass_index, block.number), done.turns
        )

    def _run_block(self, block: Block, place: Place, backend: Backend) -> None:
        done = self._answer(block, place, backend)
        self.folder.append(done.turns, done.record)
        if not self.config.continue_on_error:
            done.check()
        wall_s = done.record.wall_s
        tokens_per_s = done.record.output_tokens / wall_s if wall_s > 0 else 0.0
        self.progress.advance(
            len(block.conversations),
            f"{place.cell_id}  {place.arm}  {tokens_per_s:.1f} token/s",
        )

    def _tasks(
        self, cell: Cell, conversations: Sequence[Conversation], pass_index: int
    ) -> list[_Task]:
        """Blocks in the order in which they run, each once an arm, without those on disk.

        Blocks on disk are gone through again where a later one of their arm is missing, unless
        they leave nothing behind.
        """
        arms = self.config.arms
        tasks: list[_Task] = []
        digests, depth = self._digests[cell.cell_id], self.work.block_depth
        for block in make_blocks(conversations, cell.knobs.parallel, digests, depth):
            is_turned = (block.number + pass_index + self.config.seed) % 2
            for order, arm in enumerate(arms[::-1] if is_turned else arms):
                is_stored = self._finished.has_block(cell.cell_id, arm, pass_index, block)
                place = self._place(cell, arm, pass_index, order)
                tasks.append(_Task(block, place, is_stored))
        last = {task.place.arm: task.block.number for task in tasks if not task.is_stored}
        return [
            task
            for task in tasks
            if not task.is_stored
            or (
                task.block.number < last.get(task.place.arm, 0)
                and not keeps_nothing(task.place.arm)
            )
        ]

    def _place(self, cell: Cell, arm: str, pass_index: int, order: int) -> Place:
        info = self.runtime.info
        return Place(
            run_id=self.folder.run_id,
            cell_id=cell.cell_id,
            arm=arm,
            knobs=cell.for_arm(arm),
            pass_index=pass_index,
            order=order,
            window=cell.knobs.window_of(info.window),
            dtype=info.dtype,
            device=info.device,
            temperature=self.config.temperature,
            seed=self.config.seed,
        )

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

    def _rule(self) -> AnswerRule:
        return AnswerRule(
            max_new_tokens=self.config.max_new_tokens,
            stop_token_ids=() if self.config.ignore_eos else self.runtime.info.stop_token_ids,
            stop_strings=tuple(self.config.stop),
            sampling=self._sampling(),
        )

    def _sampling(self) -> Sampling | None:
        config = self.config
        if not config.temperature:
            return None
        return Sampling(
            temperature=config.temperature,
            top_p=config.top_p,
            top_k=config.sampling_top_k,
            rule=config.sampling_rule,
            threshold_single=config.accept_threshold_single,
            threshold_acc=config.accept_threshold_acc,
            coin_key=str(config.seed),
        )

    # --- what is asked ------------------------------------------------------------------------

    def _conversations(self, cell: Cell) -> list[Conversation]:
        """Conversations of a cell; under a replay only those that were stored whole."""
        made = list(self.work.conversations_of(cell))
        replay = self.work.replay
        if replay is None:
            return made
        return [
            talk
            for talk in made
            if all(
                (stored := replay.get((talk.question_id, turn))) and stored.output_token_ids
                for turn in range(len(talk.turns))
            )
        ]

    def _question_digests(self, conversations: Sequence[Conversation]) -> Digests:
        """Of a cell's questions; most workloads ask the same in every cell."""
        tokenizer, replay = self.runtime.tokenizer, self.work.replay
        for talk in conversations:
            if talk not in self._digest_of:
                self._digest_of[talk] = question_digest(talk, tokenizer, replay)
        return {talk.question_id: self._digest_of[talk] for talk in conversations}

    def _check_window(self, cell: Cell) -> None:
        window, info = cell.knobs.sliding_window, self.runtime.info
        if window is not None and info.window is None:
            raise UsageError(
                f"--sliding-window {window}: {info.target_id} has no sliding-window layers",
                hint="leave it out, or take a target that has some (smollm2-135m-swa)",
            )


def _size(tasks: Sequence[_Task]) -> int:
    return sum(len(task.block.conversations) for task in tasks if not task.is_stored)


@contextmanager
def _frozen_heap() -> Iterator[None]:
    """Take models and libraries out of the collector's sight: collecting between blocks is cheap."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _quiet_collector() -> Iterator[None]:
    """Keep the garbage collector out of a measured block."""
    was_enabled = gc.isenabled()
    gc.collect(_YOUNG)
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
