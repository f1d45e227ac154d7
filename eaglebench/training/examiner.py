"""Held-out acceptance: what a verify step begun at every position would accept."""

from collections.abc import Sequence

import torch

from eaglebench.training.conversation import Conversation
from eaglebench.training.recipe import Acceptance
from eaglebench.training.shelf import Shelf
from eaglebench.training.trainable import TrainableHead
from eaglebench.training.training_time_test import LevelScore, TrainingTimeTest


@torch.no_grad()
def measure_acceptance(
    head: TrainableHead,
    exam: TrainingTimeTest,
    shelf: Shelf,
    groups: Sequence[Sequence[Conversation]],
) -> Acceptance:
    """Acceptance over conversations, computed group by group."""
    counts = [count_accepted(exam.run(head, shelf.lesson(group))) for group in groups]
    return Acceptance(
        positions=sum(each.positions for each in counts),
        by_level=tuple(map(sum, zip(*(each.by_level for each in counts), strict=True))),
    )


def count_accepted(scores: Sequence[LevelScore]) -> Acceptance:
    """Slots that were asked at every level, and those with all levels up to each right."""
    asked = torch.stack([score.is_asked for score in scores]).all(dim=0)
    right = torch.stack([score.is_right & asked for score in scores]).int().cumprod(dim=0)
    return Acceptance(
        positions=int(asked.sum()), by_level=tuple(int(level.sum()) for level in right)
    )
