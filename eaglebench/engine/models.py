"""The loaded networks, shared by all engines of a run."""

from dataclasses import dataclass

import torch

from eaglebench.contracts.knobs import EngineKnobs
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.target import Target


@dataclass(frozen=True, slots=True)
class Models:
    """A target and, unless decoding is plain, its head."""

    target: Target
    head: DraftHead | None

    @property
    def device(self) -> torch.device:
        """Where both live."""
        return self.target.device

    def num_draft_nodes(self, knobs: EngineKnobs) -> int:
        """Tokens to propose at a time; none without a head."""
        return knobs.num_draft_nodes if self.head is not None else 0
