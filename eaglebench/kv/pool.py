"""The tensors: K and V of every slot, one pair a layer.

Layout [num_kv_heads, num_slots, head_dim], so that a run of slots is a view that attention reads
without a gather. Reads and writes go through `index_select` and `index_copy_` only: a slot id of
-1 raises there, where advanced indexing would quietly take the last slot.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eaglebench.errors import UsageError
from eaglebench.kv.window import WindowSlots

DUMMY_SLOTS = 1
"""Slots in front that nobody owns, where pages are single slots."""
GIGABYTE = 10**9


class PlacedLayer(NamedTuple):
    """A layer's place: its pool, its number in there, and whether that is the window pool."""

    pool: "KVPool"
    layer: int
    is_window: bool


class KVPool:
    """K and V for `num_slots` slots; the dummy page is the caller's affair.

    Raises:
        UsageError: there is not so much memory.
    """

    def __init__(
        self,
        *,
        num_layers: int,
        num_slots: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
        fill: float = 0.0,
    ) -> None:
        shape = (num_kv_heads, num_slots, head_dim)
        self.device = device
        self.num_layers = num_layers
        self.num_slots = num_slots
        try:
            self.keys, self.values = (
                [torch.full(shape, fill, dtype=dtype, device=device) for _ in range(num_layers)]
                for _ in range(2)
            )
        except (RuntimeError, MemoryError) as error:  # what torch says of memory that is not there
            size = 2 * num_layers * num_kv_heads * num_slots * head_dim * dtype.itemsize
            raise UsageError(
                f"a KV pool of {num_slots} slots takes {size / GIGABYTE:.1f} GB, which {device} "
                "does not have",
                hint="a smaller --max-total-tokens",
            ) from error
        for tensor in [*self.keys, *self.values]:
            tensor[:, :1] = 0.0  # padded batches read the dummy page's first slot

    @property
    def num_bytes(self) -> int:
        """Memory of all tensors."""
        return sum(t.numel() * t.element_size() for t in [*self.keys, *self.values])

    def of_layer(self, layer: int) -> PlacedLayer:
        """Every layer lives here under its own number."""
        return PlacedLayer(self, layer, is_window=False)

    def write(self, layer: int, slots: Tensor, key: Tensor, value: Tensor) -> None:
        """Store K and V, each [num_tokens, num_kv_heads, head_dim], at `slots` [num_tokens] int64.

        Raises:
            IndexError: a slot is negative or past the end.
        """
        self.keys[layer].index_copy_(1, slots, key.transpose(0, 1))
        self.values[layer].index_copy_(1, slots, value.transpose(0, 1))

    def move_tokens(
        self,
        sources: NDArray[np.int64],
        targets: NDArray[np.int64],
        window_slots: WindowSlots,
    ) -> None:
        """Copy the KV of all layers from slots to slots, each [n] int64; they may overlap.

        `window_slots` says where window layers keep each of them: here, in the same slots.
        """
        self.move(sources, targets)

    def move(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Copy K and V of this pool's layers from slots to slots; they may overlap."""
        taken, given = torch.from_numpy(np.stack([sources, targets])).to(self.device).unbind(0)
        for tensor in [*self.keys, *self.values]:
            tensor.index_copy_(1, given, tensor.index_select(1, taken))

    def gather(self, layer: int, slots: Tensor) -> tuple[Tensor, Tensor]:
        """K and V at `slots` [n], each [num_kv_heads, n, head_dim], copied.

        Raises:
            IndexError | RuntimeError: a slot is negative or past the end (torch has both).
        """
        return (
            self.keys[layer].index_select(1, slots),
            self.values[layer].index_select(1, slots),
        )

    def slice(self, layer: int, start: int, end: int) -> tuple[Tensor, Tensor]:
        """K and V of the ascending run [start, end), each [num_kv_heads, n, head_dim], views."""
        return self.keys[layer][:, start:end], self.values[layer][:, start:end]


class HybridPool:
    """A pool for layers that see everything and a smaller one for window layers."""

    def __init__(self, full: KVPool, window: KVPool, is_window: tuple[bool, ...]) -> None:
        self.full = full
        self.window = window
        self._places: list[PlacedLayer] = []
        counts = {False: 0, True: 0}
        for flag in is_window:
            pool = window if flag else full
            self._places.append(PlacedLayer(pool, counts[flag], is_window=flag))
            counts[flag] += 1

    @property
    def num_bytes(self) -> int:
        """Memory of both pools."""
        return self.full.num_bytes + self.window.num_bytes

    def of_layer(self, layer: int) -> PlacedLayer:
        """The pool of a layer and the layer's number in it."""
        return self._places[layer]

    def move_tokens(
        self,
        sources: NDArray[np.int64],
        targets: NDArray[np.int64],
        window_slots: WindowSlots,
    ) -> None:
        """In both pools, each by its own slots (see `KVPool`)."""
        self.full.move(sources, targets)
        self.window.move(window_slots(sources), window_slots(targets))


LayerPools = KVPool | HybridPool
"""Where the KV of each layer lives."""
