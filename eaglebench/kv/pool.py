"""The tensors: K and V of every slot, one pair a layer.

Layout [num_kv_heads, num_slots, head_dim], so that a run of slots is a view that attention reads
without a gather. Reads and writes go through `index_select` and `index_copy_` only: a slot id of
-1 raises there, where advanced indexing would quietly take the last slot.
"""

import torch
from torch import Tensor


class KVPool:
    """K and V for `num_slots` slots; the dummy page is the caller's affair."""

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
        self.num_layers = num_layers
        self.num_slots = num_slots
        self.keys = [torch.full(shape, fill, dtype=dtype, device=device) for _ in range(num_layers)]
        self.values = [
            torch.full(shape, fill, dtype=dtype, device=device) for _ in range(num_layers)
        ]
        for tensor in [*self.keys, *self.values]:
            tensor[:, :1] = 0.0  # padded batches read the dummy page's first slot

    @property
    def num_bytes(self) -> int:
        """Memory of all tensors."""
        return sum(t.numel() * t.element_size() for t in [*self.keys, *self.values])

    def write(self, layer: int, slots: Tensor, key: Tensor, value: Tensor) -> None:
        """Store K and V, each [num_tokens, num_kv_heads, head_dim], at `slots` [num_tokens] int64.

        Raises:
            IndexError: a slot is negative or past the end.
        """
        self.keys[layer].index_copy_(1, slots, key.transpose(0, 1))
        self.values[layer].index_copy_(1, slots, value.transpose(0, 1))

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
