"""The one decoder layer of a head: attention over the draft's pool, then the MLP.

    h = residual + attention(inputs)
    h = h + mlp(post_attention_layernorm(h))

What goes in is normed and joined by the head, so EAGLE-1 and EAGLE-3 share this.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import LlamaConfig
from transformers.activations import ACT2FN
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from eaglebench.kv.pool import KVPool
from eaglebench.model.attention import AttentionForm
from eaglebench.model.attention_layout import AttentionLayout
from eaglebench.model.fused import rotate
from eaglebench.model.heads.config import HeadConfig
from eaglebench.model.heads.places import LAYER, TABLES
from eaglebench.model.linear import linear
from eaglebench.model.target import Target


def rms_norm(hidden: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Root-mean-square norm over the last dimension."""
    return F.rms_norm(hidden, weight.shape, weight, eps)


def on_target(tensors: Mapping[str, Tensor], target: Target) -> dict[str, Tensor]:
    """Weights in the target's dtype, on its device; the vocabulary's tables are left out."""
    return {
        name: tensor.to(device=target.device, dtype=target.dtype)
        for name, tensor in tensors.items()
        if name not in TABLES
    }


class HeadLayer:
    """A decoder layer of the Llama shape; biases and norms of q and k where the head has them."""

    def __init__(self, config: HeadConfig, weights: Mapping[str, Tensor], target: Target) -> None:
        self.config = config
        self.device = target.device
        self.dtype = target.dtype
        self.attention = target.attention
        layer = {n.removeprefix(LAYER): t for n, t in weights.items() if n.startswith(LAYER)}
        self._qkv, self._qkv_bias = _joined(layer, [f"self_attn.{n}_proj" for n in "qkv"])
        self._output, self._output_bias = _joined(layer, ["self_attn.o_proj"])
        self._gate_up, self._gate_up_bias = _joined(layer, ["mlp.gate_proj", "mlp.up_proj"])
        self._down, self._down_bias = _joined(layer, ["mlp.down_proj"])
        self._post_norm = layer["post_attention_layernorm.weight"]
        self._query_norm = layer.get("self_attn.q_norm.weight")
        self._key_norm = layer.get("self_attn.k_norm.weight")
        self._rotary = make_rotary(config, target.device)
        self._activation = ACT2FN[config.hidden_act]
        self._form = AttentionForm(scale=config.head_width**-0.5, window=config.window)

    def make_pool(self, num_slots: int, fill: float) -> KVPool:
        """A pool for this layer."""
        return KVPool(
            num_layers=1,
            num_slots=num_slots,
            num_kv_heads=self.config.num_kv_heads,
            head_dim=self.config.head_width,
            dtype=self.dtype,
            device=self.device,
            fill=fill,
        )

    def forward(
        self,
        inputs: Tensor,
        residual: Tensor,
        positions: Tensor,
        layout: AttentionLayout,
        pool: KVPool,
    ) -> Tensor:
        """[num_tokens, hidden] from what attention sees and what it is added to."""
        attended = self._attend(inputs, positions, layout, pool)
        hidden = residual + linear(attended, self._output, self._output_bias)
        normed = rms_norm(hidden, self._post_norm, self.config.rms_norm_eps)
        gate, up = linear(normed, self._gate_up, self._gate_up_bias).chunk(2, dim=-1)
        return hidden + linear(self._activation(gate) * up, self._down, self._down_bias)

    def _attend(
        self, inputs: Tensor, positions: Tensor, layout: AttentionLayout, pool: KVPool
    ) -> Tensor:
        num_heads, num_kv_heads = self.config.num_attention_heads, self.config.num_kv_heads
        count, num_rotated = len(inputs), num_heads + num_kv_heads
        heads = linear(inputs, self._qkv, self._qkv_bias).view(count, -1, self.config.head_width)
        rotated = self._norm_heads(heads[:, :num_rotated])
        cos, sin = self._rotary(inputs[None], positions[None])
        rotated = rotate(rotated, cos[0, :, None], sin[0, :, None])
        attended = self.attention(
            rotated[:, :num_heads],
            rotated[:, num_heads:],
            heads[:, num_rotated:],
            pool.of_layer(0),
            layout,
            self._form,
        )
        return attended.reshape(count, -1)

    def _norm_heads(self, heads: Tensor) -> Tensor:
        """Norms over the width of each query and key head, as in Qwen 3."""
        if self._query_norm is None or self._key_norm is None:
            return heads
        eps, num_heads = self.config.rms_norm_eps, self.config.num_attention_heads
        queries = rms_norm(heads[:, :num_heads], self._query_norm, eps)
        return torch.cat([queries, rms_norm(heads[:, num_heads:], self._key_norm, eps)], dim=1)


def make_rotary(config: HeadConfig, device: torch.device) -> Any:
    """The rotary embedding of `transformers`, of the dimensions that are rotated.

    A share below one is said as a narrower head: models of `transformers` read the share in some
    kinds of angles only.
    """
    llama = LlamaConfig(
        hidden_size=config.hidden_size,
        num_attention_heads=config.num_attention_heads,
        head_dim=config.rotated_width,
        max_position_embeddings=config.max_position_embeddings or 2048,
        rope_parameters=config.rope,
    )
    return LlamaRotaryEmbedding(config=llama).to(device)


def _joined(layer: Mapping[str, Tensor], names: Sequence[str]) -> tuple[Tensor, Tensor | None]:
    """One matrix whose outputs are those of `names` behind one another, and its bias."""
    weights = [layer[f"{name}.weight"] for name in names]
    given = [layer.get(f"{name}.bias") for name in names]
    if all(bias is None for bias in given):
        return torch.cat(weights), None
    pairs = zip(weights, given, strict=True)
    biases = [each.new_zeros(len(each)) if bias is None else bias for each, bias in pairs]
    return torch.cat(weights), torch.cat(biases)
