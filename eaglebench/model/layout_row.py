"""What one request brings to a forward, how that reaches the device, and what masks are made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.kv.tables import BlockTable


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes among a request's last keys; the last of them are its queries.

    Attributes:
        seen: [num_queries, num_nodes] bool: which nodes each query sees, itself included;
            everything before the nodes is seen by all, as far as the layer's window reaches.
        depths: [num_nodes] int64 positions of the nodes, counted from the first of them: windows
            reach over positions, and siblings share one.
    """

    seen: NDArray[np.bool_]
    depths: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """One request's part of a forward.

    Attributes:
        slots: [context_len] int64 slots of everything it may look at; the last `num_queries` are
            the ones this forward writes.
        num_queries: tokens it computes.
        tree: where the last keys are nodes of a tree; None is a causal run.
        run_start: first slot where the slots are known to be one ascending run; None says nothing.
    """

    slots: NDArray[np.int64]
    num_queries: int
    tree: Tree | None = None
    run_start: int | None = None


def table_row(table: BlockTable, end: int, num_queries: int, tree: Tree | None = None) -> LayoutRow:
    """The row of a request that looks at positions [0, end) of its table; nothing is copied."""
    slots, run_start = table.leading(end)
    return LayoutRow(slots, num_queries, tree, run_start)


def causal(keys: Tensor, queries: Tensor, window: int | None) -> Tensor:
    """Bool: which keys, by position, each query sees; the two are broadcast."""
    seen = keys <= queries
    return seen if window is None else seen & (keys > queries - window)


def additive(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where a key is seen, -inf elsewhere."""
    bias = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
    return bias.masked_fill_(~seen, float("-inf"))


def upload(arrays: Sequence[NDArray[Any]], device: torch.device) -> list[Tensor]:
    """The arrays as tensors of their shapes on a device, parts of one copied buffer.

    Every copy waits for the host to hand it over, whatever its size, so a step gathers what it has
    to say about its rows and says it at once.

    Args:
        arrays: of one type; none at all is no copy.
        device: where to.
    """
    if not arrays:
        return []
    flat = np.concatenate([array.reshape(-1) for array in arrays])
    parts = torch.split(torch.from_numpy(flat).to(device), [array.size for array in arrays])
    return [part.view(array.shape) for part, array in zip(parts, arrays, strict=True)]
