"""Tiny random targets, and heads written as folders in every published format."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    MistralConfig,
    PretrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
)

VOCAB, HIDDEN, LAYERS = 256, 32, 6
DRAFT_VOCAB = 64
AUX_LAYER_IDS = (1, 3, 5)
"""What feeds the EAGLE-3 heads written here, as the engine counts."""
FORMATS = ("safeailab", "specforge", "sglang", "vllm", "speculators")
FAMILIES: dict[str, type[PretrainedConfig]] = {
    "llama": LlamaConfig,
    "qwen2": Qwen2Config,
    "qwen3": Qwen3Config,
    "mistral": MistralConfig,
}


def make_model(family: str = "llama", dtype: torch.dtype = torch.float32, **changes: Any) -> Any:
    """A random model of one family that differs from its initial state in every norm and bias."""
    torch.manual_seed(0)
    fields: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": 48,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 128,
        "tie_word_embeddings": True,
        "initializer_range": 0.2,
        **changes,
    }
    model: PreTrainedModel = AutoModelForCausalLM.from_config(FAMILIES[family](**fields))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.to(dtype).eval()


def make_head_config(**changes: Any) -> dict[str, Any]:
    """The config of an EAGLE-3 head that fits `make_model()`, as SpecForge writes it."""
    ids = [index - 1 for index in AUX_LAYER_IDS]
    return {
        **layer_fields(),
        "vocab_size": VOCAB,
        "draft_vocab_size": DRAFT_VOCAB,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": ids},
        **changes,
    }


def layer_fields() -> dict[str, Any]:
    """The shape of the one layer."""
    return {
        "hidden_size": HIDDEN,
        "intermediate_size": 48,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "num_hidden_layers": 1,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 128,
    }


def make_head_tensors(*extra: str, num_aux: int = 3) -> dict[str, Tensor]:
    """Random tensors of an EAGLE-3 head under SafeAILab's names; d2t takes every third target id.

    Args:
        extra: what else it has: `fc.bias`, `embed_tokens`, `qkv_bias`, `qk_norm`, `fc_norm`,
            `input_norm`.
        num_aux: states that feed it.
    """
    shapes = {
        "fc.weight": (HIDDEN, num_aux * HIDDEN),
        "norm.weight": (HIDDEN,),
        "lm_head.weight": (DRAFT_VOCAB, HIDDEN),
        "midlayer.input_layernorm.weight": (HIDDEN,),
        "midlayer.hidden_norm.weight": (HIDDEN,),
        **layer_shapes("midlayer.", 2 * HIDDEN),
        **_extra_shapes("midlayer.", extra, num_aux),
    }
    return random_tensors(shapes) | vocabulary_tables()


def make_eagle1_tensors(*extra: str) -> dict[str, Tensor]:
    """Random tensors of an EAGLE-1 head under SafeAILab's names; `extra` as for EAGLE-3."""
    shapes = {
        "fc.weight": (HIDDEN, 2 * HIDDEN),
        **layer_shapes("layers.0.", HIDDEN),
        **_extra_shapes("layers.0.", extra, 0),
    }
    return random_tensors(shapes, 0.1)  # no norm tames its states


def layer_shapes(prefix: str, width: int) -> dict[str, tuple[int, ...]]:
    """The matrices of the layer and the norm that both kinds have."""
    return {
        f"{prefix}post_attention_layernorm.weight": (HIDDEN,),
        f"{prefix}self_attn.q_proj.weight": (32, width),
        f"{prefix}self_attn.k_proj.weight": (16, width),
        f"{prefix}self_attn.v_proj.weight": (16, width),
        f"{prefix}self_attn.o_proj.weight": (HIDDEN, 32),
        f"{prefix}mlp.gate_proj.weight": (48, HIDDEN),
        f"{prefix}mlp.up_proj.weight": (48, HIDDEN),
        f"{prefix}mlp.down_proj.weight": (HIDDEN, 48),
    }


def _extra_shapes(prefix: str, extra: tuple[str, ...], num_aux: int) -> dict[str, tuple[int, ...]]:
    attention = f"{prefix}self_attn."
    known: dict[str, dict[str, tuple[int, ...]]] = {
        "fc.bias": {"fc.bias": (HIDDEN,)},
        "embed_tokens": {"embed_tokens.weight": (VOCAB, HIDDEN)},
        "qkv_bias": {
            f"{attention}{n}_proj.bias": (rows,) for n, rows in (("q", 32), ("k", 16), ("v", 16))
        },
        "o_bias": {f"{attention}o_proj.bias": (HIDDEN,)},
        "qk_norm": {f"{attention}{n}_norm.weight": (8,) for n in "qk"},
        "fc_norm": {f"fc_norm.{index}.weight": (HIDDEN,) for index in range(num_aux)},
        "input_norm": {"input_norm.weight": (num_aux * HIDDEN,)},
    }
    return {name: shape for key in extra for name, shape in known[key].items()}


def random_tensors(shapes: dict[str, tuple[int, ...]], deviation: float = 0.3) -> dict[str, Tensor]:
    """Normal weights, the same ones every time."""
    generator = torch.Generator().manual_seed(1)
    return {n: torch.randn(shape, generator=generator) * deviation for n, shape in shapes.items()}


def vocabulary_tables() -> dict[str, Tensor]:
    """`d2t` and `t2d` of a draft vocabulary of every third target id."""
    draft_ids = torch.arange(DRAFT_VOCAB)
    marked = torch.zeros(VOCAB, dtype=torch.bool)
    marked[3 * draft_ids] = True
    return {"d2t": 2 * draft_ids, "t2d": marked}


def write_head(
    folder: Path,
    *,
    tensors: dict[str, Tensor] | None = None,
    config: dict[str, Any] | None = None,
) -> Path:
    """Write a head's folder; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors or make_head_tensors(), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config or make_head_config()))
    return folder


# --- the same head in every format ------------------------------------------------------------


def publish_eagle3(
    folder: Path,
    form: str,
    tensors: dict[str, Tensor] | None = None,
    aux_layer_ids: tuple[int, ...] | None = AUX_LAYER_IDS,
    **fields: Any,
) -> Path:
    """Write an EAGLE-3 head as one of `FORMATS` does; ids are given as the engine counts."""
    tensors = tensors or make_head_tensors()
    ids = list(aux_layer_ids) if aux_layer_ids else None
    outputs = [index - 1 for index in aux_layer_ids] if aux_layer_ids else None
    flat = {
        **layer_fields(),
        "vocab_size": VOCAB,
        "draft_vocab_size": DRAFT_VOCAB,
        "tie_word_embeddings": False,
        **fields,
    }
    if form == "safeailab":  # knows no ids: they are the default's
        assert ids is None
        config = {"architectures": ["LlamaForCausalLMEagle3"], **flat}
    elif form in {"specforge", "sglang"}:
        block = {"eagle_aux_hidden_state_layer_ids": outputs} if outputs else {}
        config = {"architectures": ["LlamaForCausalLMEagle3"], **flat, "eagle_config": block}
    elif form == "vllm":
        config = {"architectures": ["Eagle3LlamaForCausalLM"], **flat}
        config |= {"eagle_aux_hidden_state_layer_ids": ids} if ids else {}
    else:
        config = _speculators_config("eagle3", flat) | {
            "norm_before_residual": fields.get("norm_before_residual", False),
            "draft_vocab_size": DRAFT_VOCAB,
            "eagle_aux_hidden_state_layer_ids": ids,
        }
    if form not in {"safeailab", "specforge"}:
        tensors = {name.replace("midlayer.", "layers.0."): t for name, t in tensors.items()}
    return write_head(folder, tensors=tensors, config=config)


def publish_eagle1(
    folder: Path, form: str, tensors: dict[str, Tensor] | None = None, **fields: Any
) -> Path:
    """Write an EAGLE-1 head as `safeailab`, `sglang`, `vllm` or `speculators` does."""
    tensors = tensors or make_eagle1_tensors()
    flat = {**layer_fields(), "vocab_size": VOCAB, **fields}
    names = {
        "safeailab": "LlamaForCausalLM",
        "sglang": "LlamaForCausalLMEagle",
        "vllm": "EagleLlamaForCausalLM",
    }
    if form in names:
        has_bias = "fc.bias" in tensors
        config = {"architectures": [names[form]], **flat, "bias": has_bias}
        return write_head(folder, tensors=tensors, config=config)
    config = _speculators_config("eagle", flat) | {
        "transformer_layer_architecture": "LlamaDecoderLayer",
        "layernorms": False,
        "fusion_bias": "fc.bias" in tensors,
    }
    renamed = {}
    for name, tensor in tensors.items():
        short = name.replace("layers.0.", "transformer.")
        renamed[f"fusion_{short}" if short.startswith("fc.") else short] = tensor
    return write_head(folder, tensors=renamed, config=config)


def _speculators_config(kind: str, flat: dict[str, Any]) -> dict[str, Any]:
    outer: dict[str, Any] = {
        name: flat.pop(name)
        for name in ("norm_before_fc", "fc_norm", "norm_output", "norm_before_residual")
        if name in flat
    }
    flat.pop("draft_vocab_size", None)
    return {
        "architectures": ["Eagle3Speculator" if kind == "eagle3" else "EagleSpeculator"],
        "speculators_model_type": kind,
        "speculators_config": {
            "algorithm": kind,
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 3}],
            "verifier": {"name_or_path": "toy", "architectures": ["LlamaForCausalLM"]},
        },
        "transformer_layer_config": {"model_type": "llama", **flat},
        **outer,
    }
