"""Tiny random targets that mix full and window layers, one of every family that does."""

from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GptOssConfig,
    MinistralConfig,
    MistralConfig,
    PretrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
)

VOCAB, WINDOW = 128, 8
MIXED = ["sliding_attention", "full_attention"] * 2
FAMILIES: dict[str, tuple[type[PretrainedConfig], dict[str, Any]]] = {
    "gpt-oss": (
        GptOssConfig,
        {"layer_types": MIXED, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "gemma2": (
        Gemma2Config,
        {
            "layer_types": MIXED,
            "attn_logit_softcapping": 5.0,
            "final_logit_softcapping": 8.0,
            "query_pre_attn_scalar": 16,
        },
    ),
    "gemma3": (Gemma3TextConfig, {"layer_types": MIXED, "query_pre_attn_scalar": 16}),
    "mistral": (MistralConfig, {}),
    "ministral": (MinistralConfig, {"layer_types": MIXED}),
    "qwen2": (Qwen2Config, {"use_sliding_window": True, "max_window_layers": 2}),
    "qwen3": (Qwen3Config, {"use_sliding_window": True, "max_window_layers": 2}),
}


def make_hybrid(family: str, **changes: Any) -> PreTrainedModel:
    """A random model of four layers whose norms, biases and sinks are not trivial."""
    torch.manual_seed(0)
    config, more = FAMILIES[family]
    fields: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 128,
        "sliding_window": WINDOW,
        "initializer_range": 0.2,
        "pad_token_id": 0,
        **more,
        **changes,
    }
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config(**fields))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()
