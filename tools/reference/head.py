"""The maths of a plain EAGLE-3 head, written out: no cache between calls, no paging, no batch.

A head with anything besides (biases, norms in front of fc, scaled rotary angles) is refused: what
is not written out here must not pass for a reference. Positions are those of the slots; slot i
pairs token i + 1 with feature i.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

IDS = "eagle_aux_hidden_state_layer_ids"
FLAGS = ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output", "use_aux_norm")
OTHER_MATHS = (
    *("partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_dim", "layer_types"),
    *("target_layer_ids", "aux_hidden_state_layer_ids", "aux_hidden_states_layers"),
    *("logit_scale", "final_logit_softcapping", "attn_logit_softcapping", "scale_emb"),
    "quantization_config",
)
"""What a config may say that is not written out here."""
LAYER_TENSORS = (
    "input_layernorm",
    "hidden_norm",
    "post_attention_layernorm",
    *(f"self_attn.{name}_proj" for name in "qkvo"),
    *(f"mlp.{name}_proj" for name in ("gate", "up", "down")),
)
OUTER_TENSORS = ("fc", "norm", "lm_head")


@dataclass(frozen=True)
class Draft:
    """Proposed target ids of one boundary, and the lead of each choice over the next best."""

    token_ids: list[int]
    gaps: list[float]


class ReferenceHead:
    """A head over the embeddings of its target, in their dtype."""

    def __init__(self, folder: Path, embedding: Tensor) -> None:
        config = json.loads((folder / "config.json").read_text())
        _refuse_variants(config)
        stored = load_file(folder / "model.safetensors")
        self.aux_layer_ids: list[int] | None = config.get(IDS)
        self.embedding = embedding
        self.weights = _bare_weights(stored, embedding.dtype)
        rows = len(self.weights["lm_head"])
        self.target_ids = torch.arange(rows) + stored.get("d2t", torch.zeros(rows)).long()
        self.num_heads = config["num_attention_heads"]
        self.num_kv_heads = config["num_key_value_heads"]
        self.width = len(self.weights["self_attn.q_proj"]) // self.num_heads
        self.eps = config["rms_norm_eps"]
        self.theta = config["rope_theta"]

    def propose(self, known_ids: Tensor, states: Tensor, num_tokens: int) -> Draft:
        """What the head foretells behind the known tokens, one token at a time.

        Args:
            known_ids: [n] tokens up to the boundary.
            states: [n - 1, num_aux * hidden] states of the target for all of them but the last.
            num_tokens: how many are wanted.
        """
        features = states @ self.weights["fc"].T
        hidden, keys, values = self._run(known_ids[1:], features, 0, None, None)
        ids: list[int] = []
        gaps: list[float] = []
        while True:
            token, gap = self._choose(hidden[-1])
            ids.append(token)
            gaps.append(gap)
            if len(ids) == num_tokens:
                return Draft(ids, gaps)
            hidden, keys, values = self._run(
                torch.tensor([token]), hidden[-1:], len(keys), keys, values
            )

    def _run(
        self,
        token_ids: Tensor,
        features: Tensor,
        first: int,
        keys: Tensor | None,
        values: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states of slots from `first` on; K and V [num_slots, kv_heads, width] of all."""
        count = len(token_ids)
        embedded = self._norm(self.embedding[token_ids], "input_layernorm")
        inputs = torch.cat([embedded, self._norm(features, "hidden_norm")], dim=-1)
        query = self._rotate(self._heads(inputs, "self_attn.q_proj"), first)
        key = self._rotate(self._heads(inputs, "self_attn.k_proj"), first)
        value = self._heads(inputs, "self_attn.v_proj")
        keys = key if keys is None else torch.cat([keys, key])
        values = value if values is None else torch.cat([values, value])
        groups = self.num_heads // self.num_kv_heads
        scores = torch.einsum("qhw,khw->hqk", query, keys.repeat_interleave(groups, 1))
        later = torch.arange(len(keys)) > torch.arange(first, first + count)[:, None]
        shares = (scores / self.width**0.5).masked_fill(later, float("-inf")).softmax(-1)
        attended = torch.einsum("hqk,khw->qhw", shares, values.repeat_interleave(groups, 1))
        output = attended.reshape(count, -1) @ self.weights["self_attn.o_proj"].T
        return self._finish(features + output), keys, values

    def _finish(self, hidden: Tensor) -> Tensor:
        normed = self._norm(hidden, "post_attention_layernorm")
        gate = F.silu(normed @ self.weights["mlp.gate_proj"].T)
        up = normed @ self.weights["mlp.up_proj"].T
        return hidden + (gate * up) @ self.weights["mlp.down_proj"].T

    def _choose(self, hidden: Tensor) -> tuple[int, float]:
        """Target id of the best draft id, and its lead."""
        logits = self.weights["lm_head"] @ self._norm(hidden, "norm")
        best = logits.topk(2)
        return int(self.target_ids[best.indices[0]]), float(best.values[0] - best.values[1])

    def _norm(self, rows: Tensor, name: str) -> Tensor:
        scale = torch.rsqrt(rows.pow(2).mean(-1, keepdim=True) + self.eps)
        return rows * scale * self.weights[name]

    def _heads(self, inputs: Tensor, name: str) -> Tensor:
        return (inputs @ self.weights[name].T).view(len(inputs), -1, self.width)

    def _rotate(self, heads: Tensor, first: int) -> Tensor:
        """Rotary embedding of [num_tokens, heads, width] from position `first` on."""
        half = self.width // 2
        frequencies = self.theta ** (-torch.arange(half, dtype=torch.float32) / half)
        angles = torch.arange(first, first + len(heads))[:, None, None] * frequencies
        low, high = heads[..., :half], heads[..., half:]
        cos, sin = angles.cos().to(heads.dtype), angles.sin().to(heads.dtype)
        return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)


def _refuse_variants(config: dict[str, Any]) -> None:
    given = [name for name in (*FLAGS, *OTHER_MATHS) if config.get(name)]
    if config.get("sliding_window") and config.get("use_sliding_window") is not False:
        given.append("sliding_window")
    if config.get("hidden_act", "silu") != "silu":
        given.append(f"hidden_act {config['hidden_act']}")
    for name in ("rope_scaling", "rope_parameters"):
        rope = config.get(name) or {}
        if rope.get("rope_type", "default") != "default" or set(rope) - {"rope_type", "rope_theta"}:
            given.append(f"rotary angles of {rope}")
    if IDS not in config and IDS in (config.get("eagle_config") or {}):
        given.append(f"{IDS} in eagle_config alone, which projects count differently")
    if given:
        raise ValueError(f"the reference knows plain EAGLE-3 heads only; not {', '.join(given)}")


def _bare_weights(stored: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """Weights by their names without the layer's prefix, nothing missing or left over."""
    weights: dict[str, Tensor] = {}
    for name, tensor in stored.items():
        bare = name.removeprefix("midlayer.").removeprefix("layers.0.").removesuffix(".weight")
        if bare not in {"d2t", "t2d"}:
            weights[bare] = tensor.to(dtype)
    expected = {*LAYER_TENSORS, *OUTER_TENSORS}
    if set(weights) != expected:
        raise ValueError(f"tensors besides a plain head's: {sorted(set(weights) ^ expected)}")
    return weights
