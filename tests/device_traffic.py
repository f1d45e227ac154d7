"""Counts what would travel between host and device, on a machine that has no device.

Reads make the host wait: `tolist`, `item`, `cpu`, and everything that turns a tensor into a
number or a truth. Copies to the device: `to` a device, tensors made of host values, and indexing
with lists or arrays, which makes tensors of them. Indexing with a mask reads how many are set.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name

READS = {
    f"torch.Tensor.{name}"
    for name in (
        "tolist",
        "item",
        "cpu",
        "nonzero",
        "__bool__",
        "__int__",
        "__float__",
        "__index__",
    )
} | {"torch.nonzero", "torch.masked_select", "torch.unique"}
COPIES = {"torch.tensor", "torch.as_tensor", "torch.Tensor.new_tensor"}
INDEXING = {"torch.Tensor.__getitem__", "torch.Tensor.__setitem__"}


class DeviceTraffic(TorchFunctionMode):
    """Counts while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()
        self.copies: Counter[str] = Counter()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],  # the signature is torch's
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Count a call and make it."""
        kwargs = dict(kwargs or {})
        name = resolve_name(func) or ""
        if name in READS:
            self.reads[name] += 1
        elif name in COPIES or (name == "torch.Tensor.to" and _names_a_device(args, kwargs)):
            self.copies[name] += 1
        elif name in INDEXING:
            self._count_index(name, args[1])
        return func(*args, **kwargs)

    def _count_index(self, name: str, index: Any) -> None:
        for part in index if isinstance(index, tuple) else (index,):
            if isinstance(part, list | np.ndarray):
                self.copies[name] += 1
            elif isinstance(part, Tensor) and part.dtype == torch.bool:
                self.reads[name] += 1


def _names_a_device(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    given = [*args[1:], kwargs.get("device")]
    return any(isinstance(each, torch.device | str) for each in given)
