"""The loop: a batch, its lesson, the loss over all levels, an update; and going on after a stop.

Muon updates the matrices inside layers, AdamW the rest, by one schedule.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from eaglebench.errors import UsageError
from eaglebench.training.conversation import Conversation
from eaglebench.training.corpus import batches
from eaglebench.training.recipe import Acceptance, TrainingRecipe
from eaglebench.training.teacher import Shelf
from eaglebench.training.training_time_test import (
    TrainableHead,
    TrainingTimeTest,
    count_accepted,
    decayed,
)

LAST_SHARE = 0.02
"""Of the rate, at the last step."""
_KEEP_EVERY = 25
"""Updates between two checkpoints."""


class Optimizers:
    """Steps both at the recipe's rates, with a linear warm-up and decay over `num_steps`."""

    def __init__(self, module: nn.Module, num_steps: int, recipe: TrainingRecipe) -> None:
        outer = ("embed_tokens", "lm_head")
        matrices: list[Tensor] = []
        others: list[Tensor] = []
        for name, parameter in module.named_parameters():
            inner = parameter.ndim == 2 and not any(part in name for part in outer)
            (matrices if inner else others).append(parameter)
        self._parameters: list[Tensor] = [*matrices, *others]
        self._parts: tuple[tuple[torch.optim.Optimizer, float], ...] = (
            (
                torch.optim.Muon(matrices, lr=recipe.matrix_rate, weight_decay=0.01),
                recipe.matrix_rate,
            ),
            (torch.optim.AdamW(others, lr=recipe.other_rate, betas=(0.9, 0.98)), recipe.other_rate),
        )
        self._num_steps = num_steps
        self._warm_steps = recipe.warm_updates
        self._done = 0

    def state(self) -> dict[str, Any]:
        """What `restore` needs to go on."""
        return {"done": self._done, "parts": [part.state_dict() for part, _ in self._parts]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._done = int(state["done"])
        for (part, _), kept in zip(self._parts, state["parts"], strict=True):
            part.load_state_dict(kept)

    def step(self, loss: Tensor) -> None:
        """One update of every parameter."""
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
        for optimizer, rate in self._parts:
            for group in optimizer.param_groups:
                group["lr"] = rate * self._share()
            optimizer.step()
            optimizer.zero_grad()
        self._done += 1

    def _share(self) -> float:
        warm = min(1.0, (self._done + 1) / max(1, self._warm_steps))
        return warm * max(LAST_SHARE, 1 - self._done / self._num_steps)


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
        self._optimizers = Optimizers(head, recipe.updates, recipe)

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
