"""Muon for the matrices inside layers, AdamW for the rest, one schedule for both."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

WARM_STEPS = 20
LAST_SHARE = 0.02
MATRIX_RATE = 0.02
OTHER_RATE = 4e-3


class Optimizers:
    """Steps both, with a linear warm-up and decay over `num_steps`."""

    def __init__(self, module: nn.Module, num_steps: int) -> None:
        outer = ("embed_tokens", "lm_head")
        matrices: list[Tensor] = []
        others: list[Tensor] = []
        for name, parameter in module.named_parameters():
            inner = parameter.ndim == 2 and not any(part in name for part in outer)
            (matrices if inner else others).append(parameter)
        self._parameters: list[Tensor] = [*matrices, *others]
        self._parts: tuple[tuple[torch.optim.Optimizer, float], ...] = (
            (torch.optim.Muon(matrices, lr=MATRIX_RATE, weight_decay=0.01), MATRIX_RATE),
            (torch.optim.AdamW(others, lr=OTHER_RATE, betas=(0.9, 0.98)), OTHER_RATE),
        )
        self._num_steps = num_steps
        self._done = 0

    def step(self, loss: Tensor) -> None:
        """One update of every parameter."""
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
        for optimizer, rate in self._parts:
            _set_rate(optimizer.param_groups, rate * self._share())
            optimizer.step()
            optimizer.zero_grad()
        self._done += 1

    def _share(self) -> float:
        warm = min(1.0, (self._done + 1) / WARM_STEPS)
        return warm * max(LAST_SHARE, 1 - self._done / self._num_steps)


def _set_rate(groups: Iterable[dict[str, object]], rate: float) -> None:
    for group in groups:
        group["lr"] = rate
