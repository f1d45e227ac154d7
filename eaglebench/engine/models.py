"""The loaded networks, shared by all engines of a run."""

from dataclasses import dataclass

import torch

from eaglebench.errors import UsageError
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.target import Target
from eaglebench.records.knobs import EngineKnobs
from eaglebench.spec.shape import NO_DRAFT, DraftRoom, DraftShape


@dataclass(frozen=True, slots=True)
class Models:
    """A target and, unless decoding is plain, its head."""

    target: Target
    head: DraftHead | None

    @property
    def device(self) -> torch.device:
        """Where both live."""
        return self.target.device

    def draft_shape(self, knobs: EngineKnobs) -> DraftShape:
        """What to propose at a time; nothing without a head.

        Raises:
            UsageError: the head's vocabulary is too small for so many branches.
        """
        if self.head is None or not knobs.num_steps:
            return NO_DRAFT
        if knobs.eagle_topk >= self.head.draft_vocab_size:
            raise UsageError(
                f"eagle-topk is {knobs.eagle_topk}; the head proposes from "
                f"{self.head.draft_vocab_size} tokens"
            )
        return DraftShape(knobs.num_steps, knobs.eagle_topk, knobs.num_draft_nodes)

    def draft_room(self, knobs: EngineKnobs, context_length: int) -> DraftRoom:
        """What to propose at a time, and how far: to the context's end or the head's.

        Raises:
            UsageError: the head's vocabulary is too small for so many branches.
        """
        most = None if self.head is None else self.head.max_positions
        limit = context_length if most is None else min(context_length, most)
        return DraftRoom(self.draft_shape(knobs), limit)
