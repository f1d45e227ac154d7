"""The fields of a head's config.json that are not read, and why that is safe: the one list of them.

Everything that may stand in a config is here or in `config.HeadConfig`; what is in neither is refused
by its name, because a field that is passed over can be the one that makes it another head.

`HARMLESS` changes no draft whatever it says. `NEUTRAL` would change drafts and is not computed here:
allowed where it says what is computed anyway.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from eaglebench.errors import CheckpointError

_TOKENS = """
bos eos pad sep unk cls decoder_start image video audio vision vision_start vision_end boi eoi boa eoa
fim_pad"""
_OF_TRAINING = """
initializer_range attention_dropout hidden_dropout resid_pdrop embd_pdrop attn_pdrop dropout
classifier_dropout gradient_checkpointing use_cache ttt_length length embed_requires_grad
pretraining_tp output_router_logits router_aux_loss_coef freeze_base_model eagle_freeze_base_model
eagle_self_logit_distillation eagle_loss_decay_factor eagle_offline"""
_OF_FILES = """
torch_dtype dtype transformers_version _name_or_path name_or_path auto_map transformers.js_config
_commit_hash license model_name _attn_implementation attn_implementation _attn_implementation_autoset
tokenizer_class is_llama_config modal_type target_model_type base_model_tp_plan base_model_pp_plan
base_model_ep_plan tp_plan use_mambapy unsloth_version unsloth_fixed _torchspec_version
speculators_config speculators_version transformer_layer_architecture has_no_defaults_at_init
specforge_version target_model_name_or_path target_model_path base_model_name_or_path
eagle_decoder_type parallel_draft_heads_num_layers next_layer_regular producer peft_config"""
_OF_GENERATION = """
max_length min_length do_sample early_stopping num_beams temperature top_k top_p typical_p
repetition_penalty length_penalty bad_words_ids no_repeat_ngram_size encoder_no_repeat_ngram_size
num_return_sequences num_beam_groups diversity_penalty forced_bos_token_id forced_eos_token_id
remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens
output_scores return_dict_in_generate return_dict output_attentions output_hidden_states torchscript
prefix use_bfloat16 problem_type finetuning_task task_specific_params id2label label2id
chunk_size_feed_forward tf_legacy_loss pruned_heads num_labels tie_encoder_decoder
cross_attention_hidden_size keys_to_ignore_at_inference"""
CARRIED = frozenset(
    [f"{name}_token_id" for name in _TOKENS.split()] + _OF_TRAINING.split() + _OF_GENERATION.split()
)
"""What says the same in every format and goes along when a head is written in another."""
HARMLESS = CARRIED | frozenset(_OF_FILES.split())
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
_PRECISION = "changes the precision of the draft's KV"
_GROUPS: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    (_LOGITS, (1,), "logit_scale logits_scaling logits_scale lm_head_multiplier"),
    (_LOGITS, (1,), "output_multiplier_scale mup_width_scale"),
    (_LOGITS, (), "final_logit_softcapping logits_soft_cap final_logit_soft_cap dim_model_base"),
    (_INPUTS, (1,), "scale_emb embedding_multiplier embedding_multiplier_scale"),
    (_INPUTS, (1,), "mup_embeddings_multiplier"),
    (_INPUTS, (False,), "normalize_embedding scale_embeddings"),
    (_SCORES, (), "attn_logit_softcapping attention_multiplier attn_scale query_pre_attn_scalar"),
    (_SCORES, (1,), "attention_out_multiplier key_multiplier"),
    (_SCORES, (False,), "attn_temperature_tuning use_log_scaling"),
    (_RESIDUAL, (1,), "residual_multiplier"),
    (_RESIDUAL, (), "scale_depth"),
    (_RESIDUAL, (False,), "use_parallel_residual parallel_attn"),
    (_MASK, (True,), "is_causal"),
    (_MASK, (), "attention_chunk_size"),
    (_MASK, (1,), "sliding_window_pattern"),
    (_MASK, (False,), "use_bidirectional_attention attention_sink attention_sinks"),
    (_MASK, (False,), "use_attention_sinks alibi"),
    (_NORMS, (False,), "norm_after post_norm layernorms use_mtp_layernorm"),
    (_NORMS, (False,), "rms_norm_add_unit_offset"),
    (_NORMS, (True,), "use_input_layernorm_in_first_layer use_last_layernorm"),
    (_NORMS, ("rms_norm", "rmsnorm"), "norm_type"),
    (_LAYER, (), "clip_qkv"),
    (_LAYER, (0,), "num_experts num_local_experts n_routed_experts num_nextn_predict_layers"),
    (_LAYER, (0,), "mtp_num_hidden_layers"),
    (_LAYER, (False,), "eh_proj_before_attn is_encoder_decoder add_cross_attention"),
    (_LAYER, (False,), "parallel_drafting"),
    (_LAYER, (True, False), "is_decoder"),
    (_LAYER, (1,), "parallel_draft_step"),
    (_ROTARY, ([], [1]), "no_rope_layers"),
    (_ROTARY, (), "no_rope_layer_interval rope_local_base_freq original_max_position_embeddings"),
    (_ROTARY, (False,), "rope_interleave rope_interleaved rotary_interleaved"),
    (_ROTARY, (True,), "is_neox_style"),
    (_ROTARY, (True, False), "use_mrope"),
    (_ROTARY, ("rope", "rotary"), "position_embedding_type"),
    (_WEIGHTS, ({},), "quantization_config compression_config hf_quant_config"),
    (_WEIGHTS, (), "quantization quant_method"),
    (_PRECISION, ("auto",), "kv_cache_dtype"),
    (_PRECISION, (), "kv_cache_quant_algo"),
)
NEUTRAL: Mapping[str, tuple[tuple[Any, ...], str]] = {
    name: (allowed, change) for change, allowed, names in _GROUPS for name in names.split()
}
"""Field: values under which it asks for nothing that is not computed, and what it would change."""

_AUX_WORDS = ("layer_ids", "layers_to_capture", "capture_layer", "aux_layer", "states_layers")


def check_unread(name: str, value: Any, where: str, known: frozenset[str]) -> None:
    """Refuse, as a CheckpointError, a field that is not read, unless it is harmless or asks for nothing.

    `where` is the block it stands in, with a dot, and `known` the fields that are read.
    """
    if name in HARMLESS:
        return
    text = repr(value)
    said = text if len(text) <= 60 else f"{text[:57]}..."
    out = f"--draft-config {name}=null"
    if name in NEUTRAL:
        allowed, changes = NEUTRAL[name]
        if not any(_is(value, one) for one in allowed):
            words = " or ".join(repr(one) for one in allowed) or "no such field"
            raise CheckpointError(
                f"{where}{name} is {said}: it {changes}, which is not computed here",
                hint=f"expected {words}; {out} computes the head without it",
            )
    elif any(word in name for word in _AUX_WORDS):
        raise CheckpointError(
            f"{where}{name} {said} seems to name auxiliary layers in words that are not "
            "known here, and how they are counted would be a guess",
            hint=f"say which states feed the head with --aux-layer-ids; {out} takes the field out",
        )
    else:
        near = get_close_matches(name, known, n=1, cutoff=0.7)
        raise CheckpointError(
            f"{where}{name} {said} is not known here, and may change what the head computes"
            + (f"; did you mean {near[0]}?" if near else ""),
            hint=f"if it is harmless, {out} takes it out",
        )


def _is(value: Any, one: Any) -> bool:
    """Equal, and of one kind: 1 is 1.0 and neither true nor "1"."""
    return isinstance(value, bool) == isinstance(one, bool) and bool(value == one)
