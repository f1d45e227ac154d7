"""A head's config.json read a second time: plainly, from the raw JSON, without the package.

What a config says is looked up place by place, in the words of the projects that write it. What it
might say and is not defined here raises `Undefined`: nothing that changes a head is passed over.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.plain_heads import ACTIVATIONS, PlainHead, plain_head

MEANS_NOTHING: dict[str, tuple[Any, ...]] = {
    # what would change a head, and what it may say all the same
    **dict.fromkeys(("logit_scale", "logits_scaling", "scale_emb", "embedding_multiplier"), (1,)),
    **dict.fromkeys(("residual_multiplier", "parallel_draft_step"), (1,)),
    **dict.fromkeys(("final_logit_softcapping", "attn_logit_softcapping", "clip_qkv"), ()),
    **dict.fromkeys(("attention_multiplier", "query_pre_attn_scalar", "scale_depth"), ()),
    **dict.fromkeys(("dim_model_base", "attention_chunk_size", "rope_local_base_freq"), ()),
    **dict.fromkeys(("original_max_position_embeddings", "quant_method"), ()),
    **dict.fromkeys(("alibi", "layernorms", "eh_proj_before_attn", "use_mtp_layernorm"), (False,)),
    **dict.fromkeys(("rope_interleave", "use_parallel_residual", "attention_sinks"), (False,)),
    **dict.fromkeys(("is_causal", "use_last_layernorm", "is_neox_style"), (True,)),
    "use_input_layernorm_in_first_layer": (True,),
    "quantization_config": ({},),
    "norm_type": ("rms_norm", "rmsnorm"),
    "no_rope_layers": ([], [1]),
}
SHARES = (
    *("partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_percent", "rotary_percentage"),
)
IDS = "eagle_aux_hidden_state_layer_ids"


class Undefined(Exception):  # noqa: N818  # it is a finding
    """The config asks for something that no plain reading is written down for."""


@dataclass(frozen=True)
class PlainRead:
    """A plain head, and what belongs to it around its maths."""

    head: PlainHead
    aux_layer_ids: tuple[int, ...]
    target_ids: Tensor
    max_positions: int | None
    embedding: Tensor
    is_eagle1: bool


def read_plainly(
    folder: Path, num_layers: int, embedding: Tensor, lm_head: Tensor, vocab_size: int
) -> PlainRead:
    """The head in a folder over a target with these weights, in their dtype."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8-sig"))
    tensors = {
        name.removeprefix("model."): tensor
        for name, tensor in load_file(folder / "model.safetensors").items()
    }
    return PlainReader(config, tensors).read(num_layers, embedding, lm_head, vocab_size)


class PlainReader:
    """One config and the tensors beside it."""

    def __init__(self, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        self.config = config
        self.tensors = tensors
        self.block = without_null(config.get("eagle_config") or {})
        inner = without_null(config.get("transformer_layer_config") or {})
        self.layer = {**inner, **without_null(config)}
        self.is_eagle1 = not any("hidden_norm" in name for name in tensors)

    def read(
        self, num_layers: int, embedding: Tensor, lm_head: Tensor, vocab_size: int
    ) -> PlainRead:
        """Everything the config says."""
        self.check_nothing_else()
        self.check_biases()
        width = (
            self.layer.get("head_dim")
            or self.layer["hidden_size"] // self.layer["num_attention_heads"]
        )
        rotated = self.rotated(width)
        frequencies, amplitude = self.angles(rotated)
        plain = plain_head(
            self.tensors,
            embedding.dtype,
            heads=self.layer["num_attention_heads"],
            kv_heads=self.layer.get("num_key_value_heads") or self.layer["num_attention_heads"],
            width=width,
            eps=float(self.layer.get("rms_norm_eps", 1e-6)),
            theta=self.theta(),
            frequencies=None if frequencies is None else torch.tensor(frequencies),
            amplitude=amplitude,
            window=self.window(),
            rotated=rotated,
            activation=self.activation(),
            norm_before_residual=bool(self.layer.get("norm_before_residual")),
            feeds_normed=self.feeds_normed(),
        )
        self.check_norms(plain)
        own = plain.weights.get("embed_tokens.weight", embedding)
        tied = self.layer.get("tie_word_embeddings") and not self.is_eagle1
        plain.weights.setdefault("lm_head.weight", own if tied else lm_head)
        rows = len(plain.weights["lm_head.weight"])
        shift = self.tensors.get("d2t", torch.zeros(rows)).long()
        if "d2t" not in self.tensors and rows != vocab_size:
            raise Undefined("draft_vocab_size")
        return PlainRead(
            plain,
            self.aux_layer_ids(num_layers),
            torch.arange(rows) + shift,
            self.layer.get("max_position_embeddings"),
            own,
            self.is_eagle1,
        )

    # --- what must not be there ---------------------------------------------------------------

    def check_nothing_else(self) -> None:
        """Nothing that would change the head and is not read below."""
        for name, allowed in MEANS_NOTHING.items():
            for place in (self.layer, self.block):
                value = place.get(name)
                if value is not None and not any(value == one for one in allowed):
                    raise Undefined(name)

    def check_biases(self) -> None:
        """A flag and the file say the same."""
        flags = {
            "attention_bias": ("q_proj.bias", "o_proj.bias"),
            "qkv_bias": ("q_proj.bias",),
            "mlp_bias": ("gate_proj.bias", "up_proj.bias", "down_proj.bias"),
            "fusion_bias": ("fc.bias",),
            "use_qk_norm": ("q_norm.weight",),
        }
        for flag, endings in flags.items():
            said = self.layer.get(flag)
            found = any(name.endswith(endings) for name in self.tensors)
            if said is not None and bool(said) != found and not self.layer.get("bias"):
                raise Undefined(flag)
        has_any = any(name.endswith(".bias") for name in self.tensors)
        if self.layer.get("bias") and not has_any:
            raise Undefined("bias")

    def check_norms(self, plain: PlainHead) -> None:
        """Norms in front of fc are those that are asked for."""
        joined = self.said("norm_before_fc")
        each = self.said("fc_norm") or self.layer.get("use_aux_norm")
        if bool(joined) != ("input_norm.weight" in plain.weights):
            raise Undefined("norm_before_fc")
        if bool(each) != ("fc_norm.0.weight" in plain.weights):
            raise Undefined("fc_norm")

    def said(self, name: str) -> Any:
        """At the top level, or in eagle_config."""
        return self.layer.get(name) if self.layer.get(name) is not None else self.block.get(name)

    # --- what changes the maths ---------------------------------------------------------------

    def activation(self) -> str:
        """Of the MLP."""
        name = str(self.layer.get("hidden_act", self.layer.get("hidden_activation", "silu")))
        if name not in ACTIVATIONS:
            raise Undefined("hidden_act")
        return name

    def feeds_normed(self) -> bool:
        """EAGLE 3.1: the normed state goes on."""
        return bool(self.said("norm_output") or self.said("return_hidden_post_norm"))

    def window(self) -> int | None:
        """Positions seen."""
        size = self.layer.get("sliding_window")
        types = self.layer.get("layer_types")
        flag = self.layer.get("use_sliding_window")
        if types:
            if len(set(types)) > 1:
                raise Undefined("layer_types")
            slides = types[0] == "sliding_attention"
        elif flag is not None:
            slides = flag and not (self.layer.get("max_window_layers") or 0)
            if flag and not slides:
                raise Undefined("max_window_layers")
        else:
            slides = size is not None and self.layer.get("model_type") == "mistral"
            if size is not None and self.layer.get("model_type") not in {
                "mistral",
                "qwen2",
                "qwen3",
            }:
                raise Undefined("sliding_window")
        if slides and size is None:
            raise Undefined("sliding_window")
        return size if slides else None

    def rope_block(self) -> dict[str, Any]:
        """New and old spelling together."""
        both: dict[str, Any] = {}
        for name in ("rope_scaling", "rope_parameters"):
            both.update(without_null(self.layer.get(name) or {}))
        return both

    def theta(self) -> float:
        """The base, where the kind is said before where the layer is."""
        inner = self.rope_block().get("rope_theta")
        return float(inner if inner is not None else self.layer.get("rope_theta", 10000.0))

    def rotated(self, width: int) -> int:
        """Dimensions that turn."""
        counts = {
            int(width * float(place[name]))
            for place in (self.layer, self.rope_block())
            for name in SHARES
            if place.get(name) is not None
        }
        for name in ("rotary_dim", "rotary_ndims"):
            if self.layer.get(name) is not None:
                counts.add(int(self.layer[name]))
        if len(counts) > 1:
            raise Undefined("partial_rotary_factor")
        return counts.pop() if counts else width

    def angles(self, rotated: int) -> tuple[list[float] | None, float]:
        """Angle a position by pair of dimensions, None for the usual ones; the amplitude."""
        block, theta = self.rope_block(), self.theta()
        kind = block.get("rope_type") or block.get("type") or "default"
        usual = [theta ** (-2 * pair / rotated) for pair in range(rotated // 2)]
        if "mrope_section" in block or kind in {"default", "mrope"}:
            return None, 1.0
        factor = float(block["factor"])
        if kind == "linear":
            return [one / factor for one in usual], 1.0
        original = float(block["original_max_position_embeddings"])
        if kind == "llama3":
            return llama3(usual, block, factor, original), 1.0
        if kind != "yarn":
            raise Undefined("rope_type")
        return yarn(usual, block, theta, rotated), yarn_amplitude(block)

    # --- features -----------------------------------------------------------------------------

    def aux_layer_ids(self, num_layers: int) -> tuple[int, ...]:
        """States that feed the head, as many layers as they have passed."""
        if self.is_eagle1 or not self.block.get("use_aux_hidden_state", True):
            return (num_layers + 1,)
        usual = [2, num_layers // 2, num_layers - 3]
        for name in (IDS, "aux_hidden_state_layer_ids"):  # vLLM, speculators
            if self.layer.get(name):
                return tuple(self.layer[name])
        for place in (self.layer, self.block):
            for name in ("target_layer_ids", "aux_hidden_states_layers"):
                if place.get(name) and not self.block.get(IDS):
                    return tuple(index + 1 for index in place[name])
        nested = self.block.get(IDS)
        if not nested:
            return tuple(usual)
        names = " ".join(self.config.get("architectures") or [])
        of_vllm = "speculators_model_type" in self.config or "Eagle3Llama" in names
        if of_vllm or num_layers in nested or nested == usual:
            shifted_is_usual = [index + 1 for index in nested] == usual
            if of_vllm or not shifted_is_usual:
                return tuple(nested)
        return tuple(index + 1 for index in nested)


def without_null(block: dict[str, Any]) -> dict[str, Any]:
    """What says something."""
    return {name: value for name, value in block.items() if value is not None}


def llama3(
    usual: list[float], block: dict[str, Any], factor: float, original: float
) -> list[float]:
    """Long waves are stretched, short ones kept, those between blended (Llama 3.1's rule)."""
    low, high = float(block["low_freq_factor"]), float(block["high_freq_factor"])
    found = []
    for frequency in usual:
        turns = original * frequency / (2 * math.pi)
        share = min(max((turns - low) / (high - low), 0), 1)
        found.append((1 - share) * frequency / factor + share * frequency)
    return found


def yarn(usual: list[float], block: dict[str, Any], theta: float, rotated: int) -> list[float]:
    """The same by dimension, between so many turns and so few (arXiv:2309.00071)."""
    factor = float(block["factor"])
    original = float(block["original_max_position_embeddings"])

    def pair_with(turns: float) -> float:
        return rotated * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low = pair_with(float(block.get("beta_fast", 32)))
    high = pair_with(float(block.get("beta_slow", 1)))
    if block.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rotated - 1)
    if low == high:
        high += 0.001
    found = []
    for pair, frequency in enumerate(usual):
        ramp = min(max((pair - low) / (high - low), 0), 1)
        found.append(frequency / factor * ramp + frequency * (1 - ramp))
    return found


def yarn_amplitude(block: dict[str, Any]) -> float:
    """What stretched angles are multiplied with."""

    def scale(weight: float) -> float:
        return 0.1 * weight * math.log(float(block["factor"])) + 1.0

    if "attention_factor" in block:
        return float(block["attention_factor"])
    if "mscale" in block:
        return scale(float(block["mscale"])) / scale(float(block["mscale_all_dim"]))
    return scale(1.0)
