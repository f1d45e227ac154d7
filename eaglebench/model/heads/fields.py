"""The fields of a head's config.json that are not read, and why that is safe: the one list of them.

Everything that may stand in a config is here or in `config.HeadConfig`; what is in neither is refused
by its name, because a field that is passed over can be the one that makes it another head.

`HARMLESS` changes no draft whatever it says. `NEUTRAL` would change drafts and is not computed here:
allowed where it says what is computed anyway. `ALIASES` are other words for fields that are read.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from eaglebench.errors import CheckpointError

ALIASES = {
    "rotary_pct": "partial_rotary_factor",
    "rope_pct": "partial_rotary_factor",
    "rotary_percent": "partial_rotary_factor",
    "rotary_percentage": "partial_rotary_factor",
    "rotary_ndims": "rotary_dim",
    "return_hidden_post_norm": "norm_output",  # TensorRT-LLM, in eagle_config
    "qk_norm": "use_qk_norm",
    "qk_layernorm": "use_qk_norm",
    "hidden_activation": "hidden_act",
}
"""Another project's word: ours."""

_TOKENS = frozenset(
    f"{name}_token_id"
    for name in (
        *("bos", "eos", "pad", "sep", "unk", "cls", "decoder_start", "image", "video", "audio"),
        *("vision", "vision_start", "vision_end", "boi", "eoi", "boa", "eoa", "fim_pad"),
    )
)
_OF_TRAINING = frozenset(
    {
        *("initializer_range", "attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop"),
        *("attn_pdrop", "dropout", "classifier_dropout", "gradient_checkpointing", "use_cache"),
        *("ttt_length", "length", "embed_requires_grad", "pretraining_tp", "output_router_logits"),
        *("router_aux_loss_coef", "freeze_base_model", "eagle_freeze_base_model"),
        *("eagle_self_logit_distillation", "eagle_loss_decay_factor", "eagle_offline"),
    }
)
_OF_FILES = frozenset(
    {
        *("torch_dtype", "dtype", "transformers_version", "_name_or_path", "name_or_path"),
        *("auto_map", "transformers.js_config", "_commit_hash", "license", "model_name"),
        *("_attn_implementation", "attn_implementation", "_attn_implementation_autoset"),
        *("tokenizer_class", "is_llama_config", "modal_type", "target_model_type"),
        *("base_model_tp_plan", "base_model_pp_plan", "base_model_ep_plan", "tp_plan"),
        *("use_mambapy", "unsloth_version", "unsloth_fixed", "_torchspec_version"),
        *("speculators_config", "speculators_version"),
        *("transformer_layer_architecture", "has_no_defaults_at_init", "specforge_version"),
        *("target_model_name_or_path", "target_model_path", "base_model_name_or_path"),
        *("eagle_decoder_type", "parallel_draft_heads_num_layers", "next_layer_regular"),
        *("producer", "peft_config"),
    }
)
_OF_GENERATION = frozenset(
    {
        *("max_length", "min_length", "do_sample", "early_stopping", "num_beams", "temperature"),
        *("top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty", "bad_words_ids"),
        *("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "num_return_sequences"),
        *("num_beam_groups", "diversity_penalty", "forced_bos_token_id", "forced_eos_token_id"),
        *("remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens"),
        *("begin_suppress_tokens", "output_scores", "return_dict_in_generate", "return_dict"),
        *("output_attentions", "output_hidden_states", "torchscript", "prefix", "use_bfloat16"),
        *("problem_type", "finetuning_task", "task_specific_params", "id2label", "label2id"),
        *("chunk_size_feed_forward", "tf_legacy_loss", "pruned_heads", "num_labels"),
        *("tie_encoder_decoder", "cross_attention_hidden_size", "keys_to_ignore_at_inference"),
    }
)
CARRIED = _TOKENS | _OF_TRAINING | _OF_GENERATION
"""What says the same in every format and goes along when a head is written in another."""
HARMLESS = CARRIED | _OF_FILES
"""Ids of special tokens, what training alone reads, what describes files, how text is generated."""

_LOGITS = "scales or caps the logits"
_INPUTS = "scales the embeddings"
_SCORES = "scales or caps the scores of attention"
_RESIDUAL = "scales what is added to the residual"
_MASK = "changes what attention sees"
_NORMS = "adds, leaves out or changes a norm"
_LAYER = "makes it another layer"
_ROTARY = "changes the rotary embedding"
_WEIGHTS = "says how the weights are packed"
NEUTRAL: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "logit_scale": ((1,), _LOGITS),
    "logits_scaling": ((1,), _LOGITS),
    "logits_scale": ((1,), _LOGITS),
    "lm_head_multiplier": ((1,), _LOGITS),
    "output_multiplier_scale": ((1,), _LOGITS),
    "final_logit_softcapping": ((), _LOGITS),
    "logits_soft_cap": ((), _LOGITS),
    "final_logit_soft_cap": ((), _LOGITS),
    "dim_model_base": ((), _LOGITS),
    "mup_width_scale": ((1,), _LOGITS),
    "scale_emb": ((1,), _INPUTS),
    "embedding_multiplier": ((1,), _INPUTS),
    "embedding_multiplier_scale": ((1,), _INPUTS),
    "mup_embeddings_multiplier": ((1,), _INPUTS),
    "normalize_embedding": ((False,), _INPUTS),
    "scale_embeddings": ((False,), _INPUTS),
    "attn_logit_softcapping": ((), _SCORES),
    "attention_multiplier": ((), _SCORES),
    "attn_scale": ((), _SCORES),
    "query_pre_attn_scalar": ((), _SCORES),
    "attention_out_multiplier": ((1,), _SCORES),
    "key_multiplier": ((1,), _SCORES),
    "attn_temperature_tuning": ((False,), _SCORES),
    "use_log_scaling": ((False,), _SCORES),
    "residual_multiplier": ((1,), _RESIDUAL),
    "scale_depth": ((), _RESIDUAL),
    "use_parallel_residual": ((False,), _RESIDUAL),
    "parallel_attn": ((False,), _RESIDUAL),
    "is_causal": ((True,), _MASK),
    "use_bidirectional_attention": ((False,), _MASK),
    "attention_chunk_size": ((), _MASK),
    "sliding_window_pattern": ((1,), _MASK),
    "attention_sink": ((False,), _MASK),
    "attention_sinks": ((False,), _MASK),
    "use_attention_sinks": ((False,), _MASK),
    "alibi": ((False,), _MASK),
    "norm_after": ((False,), _NORMS),
    "post_norm": ((False,), _NORMS),
    "layernorms": ((False,), _NORMS),
    "use_input_layernorm_in_first_layer": ((True,), _NORMS),
    "use_last_layernorm": ((True,), _NORMS),
    "use_mtp_layernorm": ((False,), _NORMS),
    "rms_norm_add_unit_offset": ((False,), _NORMS),
    "norm_type": (("rms_norm", "rmsnorm"), _NORMS),
    "clip_qkv": ((), _LAYER),
    "num_experts": ((0,), _LAYER),
    "num_local_experts": ((0,), _LAYER),
    "n_routed_experts": ((0,), _LAYER),
    "num_nextn_predict_layers": ((0,), _LAYER),
    "mtp_num_hidden_layers": ((0,), _LAYER),
    "eh_proj_before_attn": ((False,), _LAYER),
    "is_encoder_decoder": ((False,), _LAYER),
    "is_decoder": ((True, False), _LAYER),
    "add_cross_attention": ((False,), _LAYER),
    "parallel_draft_step": ((1,), _LAYER),
    "parallel_drafting": ((False,), _LAYER),
    "no_rope_layers": (([], [1]), _ROTARY),
    "no_rope_layer_interval": ((), _ROTARY),
    "rope_interleave": ((False,), _ROTARY),
    "rope_interleaved": ((False,), _ROTARY),
    "rotary_interleaved": ((False,), _ROTARY),
    "is_neox_style": ((True,), _ROTARY),
    "use_mrope": ((True, False), _ROTARY),
    "rope_local_base_freq": ((), _ROTARY),
    "original_max_position_embeddings": ((), _ROTARY),
    "position_embedding_type": (("rope", "rotary"), _ROTARY),
    "quantization_config": (({},), _WEIGHTS),
    "compression_config": (({},), _WEIGHTS),
    "quantization": ((), _WEIGHTS),
    "quant_method": ((), _WEIGHTS),
    "hf_quant_config": (({},), _WEIGHTS),
    "kv_cache_dtype": (("auto",), "changes the precision of the draft's KV"),
    "kv_cache_quant_algo": ((), "changes the precision of the draft's KV"),
}
"""Field: values under which it asks for nothing that is not computed, and what it would change."""

_AUX_WORDS = ("layer_ids", "layers_to_capture", "capture_layer", "aux_layer", "states_layers")


def check_unread(name: str, value: Any, where: str, known: frozenset[str]) -> None:
    """Refuse a field that is not read, unless it is harmless or asks for nothing.

    Args:
        name: as it stands in the config.
        value: what it says; not None.
        where: the block it stands in, with a dot, or nothing.
        known: fields that are read, to name the nearest.

    Raises:
        CheckpointError: it would change the head, or nobody knows what it does.
    """
    if name in HARMLESS:
        return
    if name in NEUTRAL:
        allowed, changes = NEUTRAL[name]
        if not any(_is(value, one) for one in allowed):
            raise CheckpointError(
                f"{where}{name} is {_short(value)}: it {changes}, which is not computed here",
                hint=_expected(name, allowed),
            )
        return
    if any(word in name for word in _AUX_WORDS):
        raise CheckpointError(
            f"{where}{name} {_short(value)} seems to name auxiliary layers in words that are not "
            "known here, and how they are counted would be a guess",
            hint="say which states feed the head with --aux-layer-ids; "
            f"--draft-config {name}=null takes the field out",
        )
    near = get_close_matches(name, known, n=1, cutoff=0.7)
    raise CheckpointError(
        f"{where}{name} {_short(value)} is not known here, and may change what the head computes"
        + (f"; did you mean {near[0]}?" if near else ""),
        hint=f"if it is harmless, --draft-config {name}=null takes it out",
    )


def _is(value: Any, one: Any) -> bool:
    """Equal, and of one kind: 1 is 1.0 and neither true nor "1"."""
    return isinstance(value, bool) == isinstance(one, bool) and bool(value == one)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _expected(name: str, allowed: tuple[Any, ...]) -> str:
    words = " or ".join(repr(one) for one in allowed) if allowed else "no such field"
    return f"expected {words}; --draft-config {name}=null computes the head without it"
