"""The parts of a causal LM that the engine works with, found in whatever family it is, and its states.

Hidden states are caught on their way through a decoder, by forward pre-hooks:

    id 0 .. n-1    what enters layer k        id n    what enters the final norm, with n layers
    id n+1         what leaves it; put there by whoever ran the decoder
"""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from eaglebench.errors import UsageError

_FINAL_NORMS = ("norm", "final_layernorm", "final_layer_norm", "ln_f", "embedding_norm")
_DIMENSIONS = 3
"""Of a hidden state: [1, num_tokens, hidden]."""


def refusal(model: PreTrainedModel, reason: str) -> UsageError:
    """The error that says that a model can't be a target, by its name."""
    kind = model.config.get_text_config().model_type
    return UsageError(
        f"{type(model).__name__} (model_type {kind}) can't be a target here: {reason}",
        hint="docs/targets.md says what a target has to be like",
    )


def refuse(model: PreTrainedModel, reason: str) -> NoReturn:
    """Say, as a UsageError, that a model can't be a target."""
    raise refusal(model, reason)


def make_ready(model: PreTrainedModel) -> None:
    """For computing alone; experts one after another in float64, which grouped products lack."""
    model.eval().requires_grad_(requires_grad=False)
    if model.dtype == torch.float64 and hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")


def find_decoder(model: PreTrainedModel) -> Any:
    """The model without its language-model head.

    Raises:
        UsageError: it has none, or one that is not a stack of decoder layers.
    """
    config = model.config.get_text_config()
    if getattr(config, "is_encoder_decoder", False):
        refuse(model, "it is an encoder with a decoder; a target is a decoder alone")
    for name in ("num_hidden_layers", "hidden_size", "vocab_size", "max_position_embeddings"):
        value = getattr(config, name, None)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            refuse(model, f"its config has {name} {value!r}; expected a whole number above 0")
    count = config.num_hidden_layers
    parts = (model.get_decoder(), model.base_model, getattr(model, "model", None))
    modules = (each for each in parts if isinstance(each, nn.Module) and each is not model)
    decoder = next((each for each in modules if decoder_layers(each, count) is not None), None)
    if decoder is None:
        refuse(model, f"no part of it is a decoder with one list of {count} layers")
    if not isinstance(model.get_output_embeddings(), nn.Module):
        refuse(model, "it has no language-model head")
    return decoder


def decoder_layers(decoder: nn.Module, count: int) -> nn.ModuleList | None:
    """The list of its `count` layers, under whatever name."""
    lists = [each for each in decoder.children() if isinstance(each, nn.ModuleList)]
    return next((each for each in lists if len(each) == count), None)


def final_norm(decoder: nn.Module) -> nn.Module | None:
    """What the last layer's state goes through, where there is such a thing."""
    found = (getattr(decoder, name, None) for name in _FINAL_NORMS)
    return next((each for each in found if isinstance(each, nn.Module)), None)


class HiddenStates:
    """States of the forward that is running; nothing is kept after `take`. One for each model."""

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
