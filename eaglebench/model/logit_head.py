"""Everything that a family does between the normed hidden state and its logits.

Families scale, cap or mask their logits in their own forward (Granite divides, Cohere multiplies,
Gemma caps, others scale the hidden state first). So the forward of the family's own class runs, on
a shallow copy of the model whose decoder gives back what it is given.
"""

from copy import copy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast

from eaglebench.model.linear import linear


class _Given(nn.Module):
    """Stands in the decoder's place and returns the hidden states that it is called with."""

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> "_Output":
        """The output of a decoder."""
        return _Output(last_hidden_state=inputs_embeds)


class _Output(BaseModelOutputWithPast):  # type: ignore[misc]  # untyped in transformers
    """The output of a decoder; what other decoders return beside the last hidden state is None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("_"):
            raise AttributeError(name)


class _Rows(nn.Module):
    """The matrix of the head over [1, num_rows, hidden], through `linear`."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight, requires_grad=False), bias

    def forward(self, hidden: Tensor) -> Tensor:
        """[1, num_rows, vocab]."""
        return linear(hidden[0], self.weight, self.bias)[None]


class LogitHead:
    """The language-model head of one model, with all that belongs to it."""

    def __init__(self, model: PreTrainedModel, decoder: nn.Module) -> None:
        self._model, self._decoder = model, decoder
        matrix: Any = model.get_output_embeddings()
        self._matrix = matrix
        self._is_plain = type(matrix) is nn.Linear
        self._whole = self._shell(None)
        self._by_columns: bool | None = None

    @torch.inference_mode()
    def __call__(self, hidden: Tensor, token_ids: Tensor | None = None) -> Tensor:
        """[num_rows, vocab] logits of normed [num_rows, hidden]; see `Target.lm_head_logits`."""
        if token_ids is None:
            return self._run(self._whole, hidden)
        if self._is_by_columns:
            return self._run(self._shell(token_ids), hidden)
        return self._run(self._whole, hidden).index_select(1, token_ids)

    @property
    def _is_by_columns(self) -> bool:
        """Whether one column's logits are found without the others; tried once, on all columns."""
        if self._by_columns is None:
            self._by_columns = self._is_plain and self._try_columns()
        return self._by_columns

    def _try_columns(self) -> bool:
        weight = self._matrix.weight
        generator = torch.Generator().manual_seed(0)
        hidden = torch.randn((2, weight.shape[1]), generator=generator)
        hidden = hidden.to(device=weight.device, dtype=weight.dtype)
        backwards = torch.arange(weight.shape[0] - 1, -1, -1, device=weight.device)
        whole = self._run(self._whole, hidden)
        turned = self._run(self._shell(backwards), hidden).flip(1)
        return whole.shape == turned.shape and torch.allclose(whole, turned, rtol=1e-2, atol=1e-2)

    @staticmethod
    def _run(shell: PreTrainedModel, hidden: Tensor) -> Tensor:
        output: Any = shell(inputs_embeds=hidden[None], use_cache=False)
        logits: Tensor = output.logits
        return logits[0]

    def _shell(self, token_ids: Tensor | None) -> PreTrainedModel:
        """The model with `_Given` for its decoder and a head of the wanted columns."""
        replaced: dict[int, nn.Module] = {id(self._decoder): _Given()}
        if self._is_plain:
            weight, bias = self._matrix.weight.detach(), self._matrix.bias
            if token_ids is not None:
                weight = weight.index_select(0, token_ids)
                bias = None if bias is None else bias.index_select(0, token_ids)
            replaced[id(self._matrix)] = _Rows(weight, bias)
        shell: PreTrainedModel = _with_replaced(self._model, replaced)
        return shell


def _with_replaced(module: Any, replaced: dict[int, nn.Module]) -> Any:
    """A copy of a tree of modules that shares everything but what is replaced and what leads there."""
    children: dict[str, nn.Module | None] = {}
    for name, child in module._modules.items():  # noqa: SLF001  # named_children drops repeated ones
        if child is not None and id(child) in replaced:
            children[name] = replaced[id(child)]
        elif child is not None and any(id(each) in replaced for each in child.modules()):
            children[name] = _with_replaced(child, replaced)
        else:
            children[name] = child
    shell = copy(module)
    shell._modules = children  # noqa: SLF001  # the copy's own, set aside of module hooks
    return shell
