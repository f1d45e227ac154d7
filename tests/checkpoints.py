"""Tiny random targets and EAGLE-3 heads, written as folders in the published formats."""

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
    """The config of a head that fits `make_model()`."""
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
        "vocab_size": VOCAB,
        "draft_vocab_size": DRAFT_VOCAB,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 5]},
        **changes,
    }


def make_head_tensors() -> dict[str, Tensor]:
    """Random tensors of a head under the published names; d2t takes every third target id."""
    generator = torch.Generator().manual_seed(1)
    shapes = {
        "fc.weight": (HIDDEN, 3 * HIDDEN),
        "norm.weight": (HIDDEN,),
        "lm_head.weight": (DRAFT_VOCAB, HIDDEN),
        "midlayer.input_layernorm.weight": (HIDDEN,),
        "midlayer.hidden_norm.weight": (HIDDEN,),
        "midlayer.post_attention_layernorm.weight": (HIDDEN,),
        "midlayer.self_attn.q_proj.weight": (32, 2 * HIDDEN),
        "midlayer.self_attn.k_proj.weight": (16, 2 * HIDDEN),
        "midlayer.self_attn.v_proj.weight": (16, 2 * HIDDEN),
        "midlayer.self_attn.o_proj.weight": (HIDDEN, 32),
        "midlayer.mlp.gate_proj.weight": (48, HIDDEN),
        "midlayer.mlp.up_proj.weight": (48, HIDDEN),
        "midlayer.mlp.down_proj.weight": (HIDDEN, 48),
    }
    tensors = {
        name: torch.randn(shape, generator=generator) * 0.3 for name, shape in shapes.items()
    }
    draft_ids = torch.arange(DRAFT_VOCAB)
    tensors["d2t"] = 2 * draft_ids
    tensors["t2d"] = torch.zeros(VOCAB, dtype=torch.bool)
    tensors["t2d"][3 * draft_ids] = True
    return tensors


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
