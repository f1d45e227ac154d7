"""Muon for the matrices inside layers, AdamW for the rest, one schedule for both."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

LAST_SHARE = 0.02
"""Of the rate, at the last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Learning rates at their highest, and how many steps they take to get there.

    Attributes:
        matrix: of the matrices inside layers (Muon).
        other: of norms, embeddings and the language-model head (AdamW).
        warm_steps: steps of linear warm-up.
    """

    matrix: float = 0.02
    other: float = 4e-3
    warm_steps: int = 20


class Optimizers:
    """Steps both, with a linear warm-up and decay over `num_steps`."""

    def __init__(self, module: nn.Module, num_steps: int, rates: Rates) -> None:
        outer = ("embed_tokens", "lm_head")
        matrices: list[Tensor] = []
        others: list[Tensor] = []
        for name, parameter in module.named_parameters():
            inner = parameter.ndim == 2 and not any(part in name for part in outer)
            (matrices if inner else others).append(parameter)
        self._parameters: list[Tensor] = [*matrices, *others]
        self._parts: tuple[tuple[torch.optim.Optimizer, float], ...] = (
            (torch.optim.Muon(matrices, lr=rates.matrix, weight_decay=0.01), rates.matrix),
            (torch.optim.AdamW(others, lr=rates.other, betas=(0.9, 0.98)), rates.other),
        )
        self._num_steps = num_steps
        self._warm_steps = rates.warm_steps
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
