"""The maths of the draft heads a second time: plain torch, one token after another, no cache.

Written from the papers and the projects' published model files, sharing nothing with the package.
Weights go by their bare names (`fc.weight`, `self_attn.q_proj.weight`, ...), the decoder layer's
without a prefix. Angles are rounded to float32 as every published implementation does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "swish": F.silu,
    "gelu": F.gelu,
    "gelu_pytorch_tanh": lambda rows: F.gelu(rows, approximate="tanh"),
    "relu": F.relu,
}


@dataclass(frozen=True)
class PlainHead:
    """Weights and the few numbers that a head's maths needs."""

    weights: dict[str, Tensor]
    heads: int = 4
    kv_heads: int = 2
    width: int = 8
    eps: float = 1e-5
    theta: float = 10000.0
    frequencies: Tensor | None = None  # [width / 2], instead of those of theta
    amplitude: float = 1.0
    window: int | None = None
    rotated: int | None = None  # dimensions of a head that turn, from the first on; None is all
    activation: str = "silu"
    norm_before_residual: bool = False
    feeds_normed: bool = False

    def linear(self, rows: Tensor, name: str) -> Tensor:
        """A matrix, and its bias if there is one."""
        product = rows @ self.weights[f"{name}.weight"].T
        bias = self.weights.get(f"{name}.bias")
        return product if bias is None else product + bias

    def norm(self, rows: Tensor, name: str) -> Tensor:
        """Root-mean-square norm by its definition."""
        scale = torch.sqrt((rows * rows).mean(-1, keepdim=True) + self.eps)
        return rows / scale * self.weights[f"{name}.weight"]

    def rotate(self, heads: Tensor) -> Tensor:
        """Rotary embedding of [num_tokens, heads, width] by complex numbers."""
        turning = self.rotated or self.width
        half = turning // 2
        exponents = torch.arange(0, turning, 2).float() / turning
        usual = 1.0 / self.theta**exponents
        frequencies = usual if self.frequencies is None else self.frequencies.float()
        angles = torch.arange(len(heads)).float()[:, None] * frequencies
        doubled = torch.cat([angles, angles], dim=-1)
        cos = (doubled.cos()[:, :half] * self.amplitude).to(heads.dtype)
        sin = (doubled.sin()[:, :half] * self.amplitude).to(heads.dtype)
        turned = torch.complex(heads[..., :half], heads[..., half:turning]) * torch.complex(
            cos, sin
        ).unsqueeze(1)
        return torch.cat([turned.real, turned.imag, heads[..., turning:]], dim=-1)

    def keys(self, inputs: Tensor) -> Tensor:
        """[num_tokens, kv_heads, width] rotated keys."""
        key = self.linear(inputs, "self_attn.k_proj").view(len(inputs), self.kv_heads, self.width)
        if "self_attn.k_norm.weight" in self.weights:
            key = self.norm(key, "self_attn.k_norm")
        return self.rotate(key)

    def attend(self, inputs: Tensor) -> Tensor:
        """[num_tokens, hidden] of attention over all earlier tokens, or those of a window."""
        query = self.linear(inputs, "self_attn.q_proj").view(len(inputs), self.heads, self.width)
        if "self_attn.q_norm.weight" in self.weights:
            query = self.norm(query, "self_attn.q_norm")
        query, key = self.rotate(query), self.keys(inputs)
        value = self.linear(inputs, "self_attn.v_proj").view(len(inputs), self.kv_heads, -1)
        rows = []
        for row in range(len(inputs)):
            first = 0 if self.window is None else max(0, row + 1 - self.window)
            seen = []
            for head in range(self.heads):
                shared = head // (self.heads // self.kv_heads)
                scores = key[first : row + 1, shared] @ query[row, head] / self.width**0.5
                seen.append(torch.softmax(scores, dim=0) @ value[first : row + 1, shared])
            rows.append(torch.cat(seen))
        return self.linear(torch.stack(rows), "self_attn.o_proj")

    def finish(self, hidden: Tensor) -> Tensor:
        """The second half of the layer."""
        normed = self.norm(hidden, "post_attention_layernorm")
        gate = ACTIVATIONS[self.activation](self.linear(normed, "mlp.gate_proj"))
        return hidden + self.linear(gate * self.linear(normed, "mlp.up_proj"), "mlp.down_proj")

    # --- EAGLE-3 ------------------------------------------------------------------------------

    def fuse3(self, aux: list[Tensor]) -> Tensor:
        """Features from auxiliary states."""
        joined = torch.cat(aux, dim=-1)
        if "input_norm.weight" in self.weights:
            joined = self.norm(joined, "input_norm")
        if "fc_norm.0.weight" in self.weights:
            parts = joined.chunk(len(aux), dim=-1)
            joined = torch.cat([self.norm(p, f"fc_norm.{i}") for i, p in enumerate(parts)], dim=-1)
        return self.linear(joined, "fc") if "fc.weight" in self.weights else joined

    def inputs3(self, embedded: Tensor, features: Tensor) -> Tensor:
        """What attention sees."""
        return torch.cat(
            [self.norm(embedded, "input_layernorm"), self.norm(features, "hidden_norm")], dim=-1
        )

    def run3(self, embedded: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """The next level's features and the logits of every slot."""
        residual = self.norm(features, "hidden_norm") if self.norm_before_residual else features
        hidden = self.finish(residual + self.attend(self.inputs3(embedded, features)))
        normed = self.norm(hidden, "norm")
        return (normed if self.feeds_normed else hidden), self.linear(normed, "lm_head")

    # --- EAGLE-1 ------------------------------------------------------------------------------

    def run1(self, embedded: Tensor, states: Tensor, lm_head: Tensor) -> tuple[Tensor, Tensor]:
        """The foretold states and the logits of every slot."""
        inputs = self.linear(torch.cat([embedded, states], dim=-1), "fc")
        hidden = self.finish(inputs + self.attend(inputs))
        return hidden, hidden @ lm_head.T


def plain_head(tensors: dict[str, Tensor], dtype: torch.dtype, **changes: Any) -> PlainHead:
    """A plain head over published tensors, whatever prefix their layer has."""
    weights = {}
    for name, tensor in tensors.items():
        bare = name
        for prefix in ("midlayer.", "layers.0.", "transformer."):
            bare = bare.removeprefix(prefix)
        weights[bare.replace("fusion_fc.", "fc.")] = tensor.to(dtype)
    return PlainHead(weights, **changes)
