"""A small random model of every causal LM that the installed `transformers` can build."""

from collections.abc import Mapping
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

VOCAB, CONTEXT, WINDOW = 128, 128, 8
SMALL: dict[str, Any] = {
    "vocab_size": VOCAB,
    "max_position_embeddings": CONTEXT,
    "sliding_window": WINDOW,
    "initializer_range": 0.2,
    "use_cache": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    # shapes, under the names that families give them
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "embedding_size"), 32),
    **dict.fromkeys(("intermediate_size", "n_inner", "ffn_dim"), 48),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers"), 4),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads"), 4),
    "num_key_value_heads": 2,
    "head_dim": 8,
    "rotary_dim": 8,
    "n_positions": CONTEXT,
    "word_embed_proj_dim": 32,
    "query_pre_attn_scalar": 8,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": VOCAB,
    # experts
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_k"), 2),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts"), 1),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 16),
    # latent attention
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank"), 16),
    **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"), 8),
    # encoders
    **dict.fromkeys(("decoder_layers", "encoder_layers"), 2),
    **dict.fromkeys(("decoder_attention_heads", "encoder_attention_heads"), 4),
    **dict.fromkeys(("decoder_ffn_dim", "encoder_ffn_dim"), 48),
    # recurrent layers
    **dict.fromkeys(("mamba_d_state", "ssm_state_size", "state_size"), 8),
    **dict.fromkeys(("mamba_n_heads", "num_mamba_heads", "mamba_num_heads"), 4),
    **dict.fromkeys(("mamba_d_head", "mamba_head_dim"), 16),
    **dict.fromkeys(("linear_num_value_heads",), 4),
    **dict.fromkeys(("linear_num_key_heads",), 2),
    **dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), 8),
}
LATENT = {"num_key_value_heads": 4, "head_dim": 8, "qk_head_dim": 16}
CHANGES: dict[str, dict[str, Any]] = {
    "mamba2": {"num_heads": 4, "head_dim": 16, "n_groups": 1},
    "falcon_h1": {"mamba_d_ssm": 64},
    "gpt_neo": {"num_layers": 4, "num_heads": 4, "attention_types": [[["global", "local"], 2]]},
    "zaya": {"num_experts_per_tok": 1},
    "reformer": {"is_decoder": True, "axial_pos_embds_dim": [16, 16]},
    "nemotron_h": {"n_groups": 2},
    "gemma3n_text": {
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 2,
        "activation_sparsity_pattern": [0.0] * 4,
    },
    "llama4_text": {"intermediate_size_mlp": 48},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2, "num_dense_layers": 1},
    "dots3_note_text": {"num_key_value_heads": 4},
    **dict.fromkeys(
        (
            "axk1",
            "axk2",
            "deepseek_v2",
            "deepseek_v3",
            "deepseek_v32",
            "glm4_moe_lite",
            "glm_moe_dsa",
            "longcat_flash",
            "minicpm3",
            "sarvam_mla",
            "youtu",
        ),
        LATENT,
    ),
}


def families() -> list[str]:
    """Model types of the mapping that `AutoModelForCausalLM` uses."""
    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def is_composite(kind: str) -> bool:
    """Whether its default config holds others (a picture, a sound and a text part)."""
    parts = getattr(CONFIG_MAPPING[kind], "sub_configs", None) or {}
    return any("attn" not in name and "ffn" not in name for name in parts)


def make_config(kind: str, **changes: Any) -> PreTrainedConfig:
    """The smallest config of a family that is like a real one.

    Raises:
        Exception: whatever `transformers` says of the shapes above; then it can't be built small.
    """
    config = CONFIG_MAPPING[kind]
    known: Mapping[str, Any] = {**config().to_dict(), **getattr(config, "attribute_map", {})}
    fields = {name: value for name, value in SMALL.items() if name in known}
    return config(**(fields | CHANGES.get(kind, {}) | changes))


def make_family(kind: str, **changes: Any) -> PreTrainedModel:
    """A random model whose norms and biases are not trivial."""
    torch.manual_seed(0)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(make_config(kind, **changes))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()
