"""The EAGLE-3 head: one decoder layer over target features and next tokens.

    g = fc([a_low ; a_mid ; a_high])                       features of the target, once a slot
    x = [input_layernorm(embed(t_{i+1})) ; hidden_norm(g)]
    h = g + attention(x)
    h = h + mlp(post_attention_layernorm(h))               goes on to the next level, not normed
    logits = lm_head(norm(h))                              over the draft's own vocabulary

Slot i pairs token t_{i+1} with feature i at rotary position i. Source: EAGLE-3 (arXiv:2503.01840)
and its published code (`cnets.py`, SafeAILab/EAGLE).
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import LlamaConfig
from transformers.activations import ACT2FN
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from eaglebench.errors import CheckpointError
from eaglebench.kv.pool import KVPool
from eaglebench.model.attention import AttentionForm
from eaglebench.model.attention_plan import AttentionPlan
from eaglebench.model.checkpoint import place, read_tensors
from eaglebench.model.fused import rotate
from eaglebench.model.head_config import (
    HeadConfig,
    check_aux_layer_ids,
    default_aux_layer_ids,
    read_head_config,
)
from eaglebench.model.linear import linear
from eaglebench.model.target import Target
from eaglebench.model.vocabulary import target_id_table

_LAYER = "midlayer."
REQUIRED = frozenset(
    {"fc.weight", "norm.weight", "lm_head.weight"}
    | {
        f"{_LAYER}{n}.weight"
        for n in ("input_layernorm", "hidden_norm", "post_attention_layernorm")
    }
    | {f"{_LAYER}self_attn.{n}_proj.weight" for n in "qkvo"}
    | {f"{_LAYER}mlp.{n}_proj.weight" for n in ("gate", "up", "down")}
)
OPTIONAL = frozenset({"fc.bias", "d2t", "t2d", "embed_tokens.weight"})


@dataclass(slots=True)
class LoadReport:
    """Where each tensor came from, which layers feed the head, and what deserves a word."""

    sources: dict[str, str]
    aux_layer_ids: tuple[int, ...]
    warnings: list[str] = field(default_factory=list)


class EagleHead:
    """A loaded EAGLE-3 head that borrows what its checkpoint leaves out from its target."""

    def __init__(
        self, config: HeadConfig, weights: dict[str, Tensor], target: Target, report: LoadReport
    ) -> None:
        self.config = config
        self.report = report
        self.target = target
        self.device = target.device
        self.dtype = target.dtype
        self.attention = target.attention
        self.attention_backend = target.attention_backend
        self.aux_layer_ids = report.aux_layer_ids
        self.draft_vocab_size = len(weights["lm_head.weight"])
        self.max_positions = config.max_position_embeddings
        table, warning = target_id_table(
            weights.pop("d2t", None),
            weights.pop("t2d", None),
            draft_vocab_size=self.draft_vocab_size,
            vocab_size=target.vocab_size,
        )
        if warning:
            report.warnings.append(warning)
        self._target_ids = table.to(self.device)
        moved = {n: t.to(device=self.device, dtype=self.dtype) for n, t in weights.items()}
        self._take(moved)
        self._rotary = _make_rotary(config, self.device)
        self._activation = ACT2FN[config.hidden_act]
        self._form = AttentionForm(scale=config.head_width**-0.5)

    def _take(self, weights: dict[str, Tensor]) -> None:
        layer = {n.removeprefix(_LAYER): t for n, t in weights.items() if n.startswith(_LAYER)}
        self._fc, self._fc_bias = weights["fc.weight"], weights.get("fc.bias")
        self._norm, self._lm_head = weights["norm.weight"], weights["lm_head.weight"]
        self._embedding = weights.get("embed_tokens.weight", self.target.embedding.weight)
        self._qkv = torch.cat([layer[f"self_attn.{n}_proj.weight"] for n in "qkv"])
        self._output = layer["self_attn.o_proj.weight"]
        self._gate_up = torch.cat([layer[f"mlp.{n}_proj.weight"] for n in ("gate", "up")])
        self._down = layer["mlp.down_proj.weight"]
        self._token_norm = layer["input_layernorm.weight"]
        self._feature_norm = layer["hidden_norm.weight"]
        self._post_norm = layer["post_attention_layernorm.weight"]

    @classmethod
    def load(
        cls,
        path: Path | str,
        target: Target,
    ) -> "EagleHead":
        """Load a checkpoint folder in the published EAGLE-3 format.

        dtype, device and attention backend follow the target.

        Raises:
            CheckpointError: the checkpoint is incomplete, holds tensors without a place, or does
                not fit the target; the message names both numbers.
        """
        folder = Path(path)
        config = read_head_config(folder)
        tensors = read_tensors(folder)
        placed = place(tensors, required=REQUIRED, optional=OPTIONAL)
        report = LoadReport(placed.sources, _aux_layer_ids(config, target))
        if config.aux_layer_ids is None:
            report.warnings.append(
                f"the config names no auxiliary layers; {report.aux_layer_ids} are used"
            )
        _check_shapes(config, placed.tensors, target, len(report.aux_layer_ids))
        if "embed_tokens.weight" not in placed.tensors:
            report.sources["embed_tokens.weight"] = "the target's embeddings"
        return cls(config, placed.tensors, target, report)

    def make_pool(self, num_slots: int, fill: float = 0.0) -> KVPool:
        """A pool for the head's one layer, over the same slot ids as the target's."""
        return KVPool(
            num_layers=1,
            num_slots=num_slots,
            num_kv_heads=self.config.num_kv_heads,
            head_dim=self.config.head_width,
            dtype=self.dtype,
            device=self.device,
            fill=fill,
        )

    @torch.inference_mode()
    def fuse(self, aux: Tensor) -> Tensor:
        """Features [num_tokens, hidden] from the target's [num_tokens, num_aux * hidden]."""
        return linear(aux, self._fc, self._fc_bias)

    @torch.inference_mode()
    def forward(
        self,
        token_ids: Tensor,
        features: Tensor,
        positions: Tensor,
        plan: AttentionPlan,
        pool: KVPool,
    ) -> Tensor:
        """Hidden states [num_tokens, hidden]; writes draft KV of the plan's slots.

        Args:
            token_ids: [num_tokens] int64, the token *after* each slot.
            features: [num_tokens, hidden] fused target features, or hidden states of a level.
            positions: [num_tokens] int64, position of each slot.
            plan: what is written and attended to.
            pool: the draft's pool.
        """
        config = self.config
        embedded = F.embedding(token_ids, self._embedding)
        inputs = torch.cat(
            [self._rms(embedded, self._token_norm), self._rms(features, self._feature_norm)], dim=-1
        )
        heads = linear(inputs, self._qkv).view(len(token_ids), -1, config.head_width)
        num_rotated = config.num_attention_heads + config.num_kv_heads
        cos, sin = self._rotary(features[None], positions[None])
        rotated = rotate(heads[:, :num_rotated], cos[0], sin[0])
        attended = self.attention(
            rotated[:, : config.num_attention_heads],
            rotated[:, config.num_attention_heads :],
            heads[:, num_rotated:],
            pool,
            0,
            plan,
            self._form,
        )
        hidden = features + linear(attended.reshape(len(token_ids), -1), self._output)
        gate, up = linear(self._rms(hidden, self._post_norm), self._gate_up).chunk(2, dim=-1)
        return hidden + linear(self._activation(gate) * up, self._down)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """[num_rows, draft_vocab] logits of hidden states that `forward` returned."""
        return linear(self._rms(hidden, self._norm), self._lm_head)

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """Target ids [n] of draft ids [n]."""
        return self._target_ids.index_select(0, draft_ids)

    def _rms(self, hidden: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(hidden, weight.shape, weight, self.config.rms_norm_eps)


def _aux_layer_ids(config: HeadConfig, target: Target) -> tuple[int, ...]:
    ids = config.aux_layer_ids or default_aux_layer_ids(target.num_layers)
    check_aux_layer_ids(ids, target.num_layers)
    return ids


def _check_shapes(
    config: HeadConfig, tensors: dict[str, Tensor], target: Target, num_aux: int
) -> None:
    """Hold the tensors against the config and the target before anything is computed."""
    hidden, width = config.hidden_size, config.head_width
    if config.vocab_size != target.vocab_size and "d2t" not in tensors:
        raise CheckpointError(
            f"the head is made for a vocabulary of {config.vocab_size}, the target has "
            f"{target.vocab_size}",
            hint="the head belongs to another model, or its padded vocabulary needs a d2t",
        )
    expected = {
        "fc.weight": (hidden, num_aux * target.hidden_size),
        "norm.weight": (hidden,),
        f"{_LAYER}self_attn.q_proj.weight": (config.num_attention_heads * width, 2 * hidden),
        f"{_LAYER}self_attn.k_proj.weight": (config.num_kv_heads * width, 2 * hidden),
        f"{_LAYER}self_attn.v_proj.weight": (config.num_kv_heads * width, 2 * hidden),
        f"{_LAYER}self_attn.o_proj.weight": (hidden, config.num_attention_heads * width),
        f"{_LAYER}mlp.gate_proj.weight": (config.intermediate_size, hidden),
        f"{_LAYER}mlp.up_proj.weight": (config.intermediate_size, hidden),
        f"{_LAYER}mlp.down_proj.weight": (hidden, config.intermediate_size),
    }
    for name, shape in expected.items():
        got = tuple(tensors[name].shape)
        if got != shape:
            raise CheckpointError(
                f"{name} has shape {got}; expected {shape} (head hidden {hidden}, target hidden "
                f"{target.hidden_size}, {num_aux} auxiliary layers)"
            )
    _check_vocabulary(config, tensors, target)


def _check_vocabulary(config: HeadConfig, tensors: dict[str, Tensor], target: Target) -> None:
    rows, width = tensors["lm_head.weight"].shape
    if width != config.hidden_size:
        raise CheckpointError(f"lm_head is {width} wide; the head is {config.hidden_size}")
    if config.draft_vocab_size is not None and config.draft_vocab_size != rows:
        raise CheckpointError(
            f"the config says draft_vocab_size {config.draft_vocab_size}, lm_head has {rows} rows"
        )
    embedded = tensors.get("embed_tokens.weight", target.embedding.weight)
    if embedded.shape[1] != config.hidden_size:
        raise CheckpointError(
            f"embeddings are {embedded.shape[1]} wide, the head is {config.hidden_size}",
            hint="a head of another width than its target must bring embeddings of its own",
        )
    if embedded.shape[0] < target.vocab_size:
        raise CheckpointError(
            f"the head embeds {embedded.shape[0]} tokens, the target knows {target.vocab_size}"
        )


def _make_rotary(config: HeadConfig, device: torch.device) -> Any:
    """The rotary embedding of `transformers` for this config, old or new spelling."""
    rope = dict(config.rope_parameters or config.rope_scaling or {})
    kind = rope.pop("type", None) or rope.get("rope_type", "default")
    if kind != "default" and kind not in ROPE_INIT_FUNCTIONS:
        raise CheckpointError(
            f"unknown rotary type {kind!r}; known: default, {', '.join(ROPE_INIT_FUNCTIONS)}"
        )
    rope["rope_type"] = kind
    rope.setdefault("rope_theta", config.rope_theta or 10000.0)
    llama = LlamaConfig(
        hidden_size=config.hidden_size,
        num_attention_heads=config.num_attention_heads,
        head_dim=config.head_width,
        max_position_embeddings=config.max_position_embeddings or 2048,
        rope_parameters=rope,
    )
    return LlamaRotaryEmbedding(config=llama).to(device)
