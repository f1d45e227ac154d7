"""Hidden states caught on their way through a decoder, by forward pre-hooks.

    id 0 .. n-1    what enters layer k        id n    what enters the final norm, with n layers
    id n+1         what leaves it; put there by whoever ran the decoder

One object belongs to one model; all who look at that model share it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from eaglebench.errors import UsageError
from eaglebench.model.decoder import decoder_layers, final_norm

_DIMENSIONS = 3
"""Of a hidden state: [1, num_tokens, hidden]."""


class HiddenStates:
    """States of the forward that is running; nothing is kept after `take`."""

    def __init__(self, decoder: nn.Module, num_layers: int) -> None:
        self._caught: dict[int, Tensor] = {}
        self._wanted: tuple[int, ...] = ()
        self.normed_id = num_layers + 1
        for index, layer in enumerate(decoder_layers(decoder, num_layers) or ()):
            layer.register_forward_pre_hook(self._catch(index), with_kwargs=True)
        norm = final_norm(decoder)
        if norm is not None:
            norm.register_forward_pre_hook(self._catch(num_layers), with_kwargs=True)

    def want(self, ids: Sequence[int]) -> None:
        """Catch these in the forward that follows."""
        self._caught.clear()
        self._wanted = tuple(ids)

    def take(self, normed: Tensor) -> Tensor | None:
        """[num_tokens, num_wanted * hidden], side by side in the order asked for; None for none.

        `normed` is the state that left the final norm.

        Raises:
            UsageError: a state was asked for that this model does not show.
        """
        caught = {**self._caught, self.normed_id: normed}
        self._caught.clear()
        missing = [index for index in self._wanted if index not in caught]
        if missing:
            raise UsageError(
                f"this target shows no hidden state {missing[0]}; it has 0 .. {self.normed_id}",
                hint="name other layers in the head's config",
            )
        return torch.cat([caught[index] for index in self._wanted], -1) if self._wanted else None

    def _catch(self, index: int) -> Callable[[nn.Module, tuple[Tensor, ...], dict[str, Any]], None]:
        def hook(_module: nn.Module, args: tuple[Tensor, ...], more: dict[str, Any]) -> None:
            state = args[0] if args else more.get("hidden_states")
            if index in self._wanted and isinstance(state, Tensor) and state.dim() == _DIMENSIONS:
                self._caught[index] = state[0]

        return hook
