"""The loop: a batch, its lesson, the loss over all levels, an update; and going on after a stop."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from eaglebench.errors import UsageError
from eaglebench.training.conversation import Conversation
from eaglebench.training.corpus import batches
from eaglebench.training.optimizer import Optimizers, Rates
from eaglebench.training.recipe import Acceptance, TrainingRecipe
from eaglebench.training.teacher import Shelf
from eaglebench.training.trainable import TrainableHead
from eaglebench.training.training_time_test import TrainingTimeTest, count_accepted, decayed

_KEEP_EVERY = 25
"""Updates between two checkpoints."""


@dataclass(frozen=True, slots=True)
class Update:
    """One step of the optimizer.

    Attributes:
        loss: sum over levels, decayed.
        acceptance: on the batch itself, before the step.
    """

    loss: float
    acceptance: Acceptance


class Trainer:
    """Trains a head; everything it needs to go on is in its checkpoint."""

    def __init__(
        self,
        head: TrainableHead,
        shelf: Shelf,
        exam: TrainingTimeTest,
        recipe: TrainingRecipe,
    ) -> None:
        self.head, self.exam = head, exam
        self.done = 0
        self.seen_tokens = 0
        self._shelf, self._recipe = shelf, recipe
        rates = Rates(
            matrix=recipe.matrix_rate, other=recipe.other_rate, warm_steps=recipe.warm_updates
        )
        self._optimizers = Optimizers(head, recipe.updates, rates)

    def train(
        self,
        conversations: Sequence[Conversation],
        keep: Callable[[dict[str, Any]], None],
    ) -> Iterator[Update]:
        """Do the updates that are left, yielding after each.

        `keep` stores a checkpoint, now and then, at the end, and where the caller stops.
        """
        order = batches(conversations, self._recipe.batch_tokens, self._recipe.seed)
        for _ in range(self.done):  # the order depends on the seed alone
            next(order)
        try:
            while self.done < self._recipe.updates:
                yield self._update(next(order))
                if self.done % _KEEP_EVERY == 0:
                    keep(self.state())
        finally:
            keep(self.state())

    def _update(self, batch: list[Conversation]) -> Update:
        lesson = self._shelf.lesson(batch)
        scores = self.exam.run(self.head, lesson)
        loss = decayed(scores, self._recipe.level_decay)
        self._optimizers.step(loss)
        self.done += 1
        self.seen_tokens += sum(len(each.ids) for each in batch)
        return Update(loss.item(), count_accepted(scores))

    def state(self) -> dict[str, Any]:
        """What `restore` needs."""
        return {
            "done": self.done,
            "seen_tokens": self.seen_tokens,
            "head": self.head.state_dict(),
            "optimizers": self._optimizers.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        self.done, self.seen_tokens = int(state["done"]), int(state["seen_tokens"])
        self.head.load_state_dict(state["head"])
        self._optimizers.restore(state["optimizers"])


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Replace a checkpoint as a whole: an interrupted write leaves the old one."""
    fresh = path.with_suffix(".new")
    torch.save(state, fresh)
    fresh.replace(path)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint; a UsageError if it is none."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError) as error:
        raise UsageError(
            f"{path} is no checkpoint: {error}", hint="remove it to start the updates anew"
        ) from error
    return state
