"""Module replacements that compute what they replace in fewer, larger operations.

`transformers` spends as long on small operations as on matrix products at this size, so decoder
layers of the Llama shape (Llama, Qwen2, Qwen3, Mistral) are replaced whole: one product for Q, K
and V, one for gate and up, a one-call norm. A test holds every replacement against the original.
Layers of any other shape stay as they are.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from eaglebench.model.linear import FewRowLinear
from eaglebench.model.paged_call import Asked, Running

FUSED_MODEL_TYPES = frozenset({"llama", "qwen2", "qwen3", "mistral"})


def fused_linear(*parts: Any) -> FewRowLinear:
    """One linear layer whose outputs are those of `parts` behind one another."""
    biases = [part.bias for part in parts]
    weight = torch.cat([part.weight.detach() for part in parts])
    bias = None if biases[0] is None else torch.cat([each.detach() for each in biases])
    return FewRowLinear(weight, bias)


def rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of [..., head_dim] with cos and sin, which are broadcast.

    The same products and sums as `transformers`: x * cos + rotate_half(x) * sin. Dimensions past
    those of cos and sin stay as they are.
    """
    width = cos.shape[-1]
    if width < heads.shape[-1]:
        return torch.cat([rotate(heads[..., :width], cos, sin), heads[..., width:]], dim=-1)
    half = heads.shape[-1] // 2
    rotated = torch.cat([-heads[..., half:], heads[..., :half]], dim=-1)
    return heads * cos + rotated * sin


class FusedLayer(nn.Module):
    """A decoder layer of the Llama shape."""

    def __init__(self, layer: Any, running: Running) -> None:
        super().__init__()
        self.running = running
        attention = layer.self_attn
        self.head_dim = int(attention.head_dim)
        self.num_heads = attention.q_proj.out_features // self.head_dim
        self.num_kv_heads = attention.k_proj.out_features // self.head_dim
        self.asked = Asked(layer=int(attention.layer_idx), scale=float(attention.scaling))
        self.input_norm = _fuse_norm(layer.input_layernorm)
        self.post_norm = _fuse_norm(layer.post_attention_layernorm)
        self.q_norm = _fuse_norm(attention.q_norm) if hasattr(attention, "q_norm") else None
        self.k_norm = _fuse_norm(attention.k_norm) if hasattr(attention, "k_norm") else None
        self.qkv = fused_linear(attention.q_proj, attention.k_proj, attention.v_proj)
        self.output = fused_linear(attention.o_proj)
        self.gate_up = fused_linear(layer.mlp.gate_proj, layer.mlp.up_proj)
        self.down = fused_linear(layer.mlp.down_proj)
        self.activation = layer.mlp.act_fn

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor] | None = None,
        **_: Any,
    ) -> Tensor:
        """[1, num_tokens, hidden] to the same; called in place of the original layer."""
        if position_embeddings is None:
            raise ValueError("a decoder layer needs rotary embeddings")
        hidden = hidden_states[0]
        cos, sin = position_embeddings
        hidden = hidden + self._attend(self.input_norm(hidden), cos[0, :, None], sin[0, :, None])
        gate, up = self.gate_up(self.post_norm(hidden)).chunk(2, dim=-1)
        hidden = hidden + self.down(self.activation(gate) * up)
        batched: Tensor = hidden[None]
        return batched

    def _attend(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        qkv = self.qkv(hidden).view(hidden.shape[0], -1, self.head_dim)
        num_rotated = self.num_heads + self.num_kv_heads
        value = qkv[:, num_rotated:]
        if self.q_norm is None or self.k_norm is None:
            rotated = rotate(qkv[:, :num_rotated], cos, sin)
            query, key = rotated[:, : self.num_heads], rotated[:, self.num_heads :]
        else:
            query = rotate(self.q_norm(qkv[:, : self.num_heads]), cos, sin)
            key = rotate(self.k_norm(qkv[:, self.num_heads : num_rotated]), cos, sin)
        attended = self.running.attend(query, key, value, self.asked)
        projected: Tensor = self.output(attended.reshape(hidden.shape[0], -1))
        return projected


def _fuse_norm(norm: Any) -> nn.RMSNorm:
    """The norm in one call; exact in float64, where the original drops to float32."""
    weight = norm.weight.detach()
    fused = nn.RMSNorm(weight.shape, eps=float(norm.variance_epsilon))
    fused.weight = nn.Parameter(weight, requires_grad=False)
    return fused


def fuse_layers(model: PreTrainedModel, decoder: Any, running: Running) -> int:
    """Replace what can be replaced, in place; returns the number of layers replaced.

    Norms are replaced in every model that has them in this form, since the originals round to
    float32 even under float64.
    """
    fused = len(decoder.layers) if model.config.model_type in FUSED_MODEL_TYPES else 0
    for index in range(fused):
        decoder.layers[index] = FusedLayer(decoder.layers[index], running)
    for parent in model.modules():
        for name, child in list(parent.named_children()):
            if type(child).__name__.endswith("RMSNorm") and hasattr(child, "variance_epsilon"):
                setattr(parent, name, _fuse_norm(child))
    return fused
