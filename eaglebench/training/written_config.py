"""`config.json` of a head, written in the words of one format.

Layer ids stand at the top level as vLLM counts and in `eagle_config` as SGLang does, so that both
read the same states.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from eaglebench.model.heads.aux_layers import AuxLayers, count_as_output
from eaglebench.model.heads.config import HeadConfig, flat_fields
from eaglebench.model.heads.fields import CARRIED
from eaglebench.model.heads.format import Algorithm, HeadFormat
from eaglebench.model.heads.places import LM_HEAD, MLP, OUTPUT, QKV, QUERY_NORM, has_bias
from eaglebench.model.heads.published import PublishedHead
from eaglebench.model.heads.rope import SECTIONS

_SPECULATIVE_TOKENS = 3
"""What speculators itself writes where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """The target as a speculators config names it."""

    name: str | None = None
    architectures: tuple[str, ...] = ()


def write_config(
    head: PublishedHead,
    to: HeadFormat,
    *,
    tensors: Mapping[str, Tensor],
    aux: AuxLayers,
    verifier: Verifier,
) -> dict[str, Any]:
    """The config of a head whose tensors, by place, are already those of the format."""
    written = _WRITERS[to](head, tensors, aux, verifier)
    said = flat_fields(head.raw, head.path)
    kept = {name: said[name] for name in sorted(CARRIED & said.keys() - written.keys())}
    return {**written, **kept}


def _safeailab_config(
    head: PublishedHead, tensors: Mapping[str, Tensor], _aux: AuxLayers, _verifier: Verifier
) -> dict[str, Any]:
    fields = _flat_fields(head, tensors)
    if has_bias(tensors, QKV):
        fields["qkv_bias"] = True
    if head.algorithm is Algorithm.EAGLE:
        return {"architectures": ["LlamaForCausalLM"], **fields, "bias": "fc.bias" in tensors}
    return {"architectures": ["LlamaForCausalLMEagle3"], **fields}


def _sglang_config(
    head: PublishedHead, tensors: Mapping[str, Tensor], aux: AuxLayers, _verifier: Verifier
) -> dict[str, Any]:
    fields = _flat_fields(head, tensors)
    if head.algorithm is Algorithm.EAGLE:
        # `bias` would mean the biases of attention there; fc has one in any case
        fields["attention_bias"] = has_bias(tensors, QKV)
        return {"architectures": ["LlamaForCausalLMEagle"], **fields}
    config = head.config
    block: dict[str, Any] = {"use_aux_hidden_state": config.takes_aux}
    if aux.ids is not None and config.takes_aux:
        fields["eagle_aux_hidden_state_layer_ids"] = list(aux.ids)
        block["eagle_aux_hidden_state_layer_ids"] = list(count_as_output(aux.ids))
        fields["num_aux_hidden_states"] = len(aux.ids)
    flags = {
        "bias": "fc.bias" in tensors,
        "norm_before_fc": config.norms_joined,
        "fc_norm": config.norms_each,
        "norm_output": head.feeds_normed,
    }
    fields |= {name: True for name, is_on in flags.items() if is_on}
    return {"architectures": ["LlamaForCausalLMEagle3"], **fields, "eagle_config": block}


def _speculators_config(
    head: PublishedHead, tensors: Mapping[str, Tensor], aux: AuxLayers, verifier: Verifier
) -> dict[str, Any]:
    config, kind = head.config, head.algorithm.lower()
    layer = {
        "model_type": "qwen3" if QUERY_NORM in tensors else "llama",
        **_layer_fields(config),
        "vocab_size": config.vocab_size,
        "attention_bias": has_bias(tensors, QKV),
        "mlp_bias": has_bias(tensors, MLP),
        "tie_word_embeddings": False,
    }
    if config.window is not None:
        layer |= {"layer_types": ["sliding_attention"], "sliding_window": config.window}
        layer["use_sliding_window"] = True
    outer: dict[str, Any] = {
        "speculators_model_type": kind,
        "speculators_config": {
            "algorithm": kind,
            "default_proposal_method": "greedy",
            "proposal_methods": [
                {"proposal_type": "greedy", "speculative_tokens": _SPECULATIVE_TOKENS}
            ],
            "verifier": {
                "name_or_path": verifier.name,
                "architectures": list(verifier.architectures),
            },
        },
        "transformer_layer_config": layer,
        "torch_dtype": _dtype_name(tensors),
    }
    if head.algorithm is Algorithm.EAGLE:
        return outer | {
            "architectures": ["EagleSpeculator", "LlamaDecoderLayer"],
            "transformer_layer_architecture": "LlamaDecoderLayer",
            "layernorms": False,
            "fusion_bias": "fc.bias" in tensors,
        }
    ids = aux.ids if config.takes_aux else None
    return outer | {
        "architectures": ["Eagle3Speculator"],
        "draft_vocab_size": len(tensors[LM_HEAD]),
        "target_hidden_size": config.target_hidden_size,
        "eagle_aux_hidden_state_layer_ids": None if ids is None else list(ids),
        "norm_before_residual": bool(config.norm_before_residual),
        "norm_before_fc": config.norms_joined,
        "fc_norm": config.norms_each,
        "norm_output": head.feeds_normed,
        "tie_word_embeddings": False,
    }


def _flat_fields(head: PublishedHead, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    config = head.config
    fields = {
        "model_type": "llama",
        **_layer_fields(config),
        "vocab_size": config.vocab_size,
        "tie_word_embeddings": _is_tied(head, tensors),
        "torch_dtype": _dtype_name(tensors),
    }
    if head.algorithm is Algorithm.EAGLE3:
        fields |= _vocabulary(tensors)
    if config.target_hidden_size is not None:
        fields["target_hidden_size"] = config.target_hidden_size
    return fields


def _is_tied(head: PublishedHead, tensors: Mapping[str, Tensor]) -> bool:
    """Whether the head's embeddings are its lm_head as well."""
    is_eagle3 = head.algorithm is Algorithm.EAGLE3
    return is_eagle3 and head.config.tie_word_embeddings and LM_HEAD not in tensors


def _vocabulary(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Rows of lm_head; nothing where it is the target's, as SGLang and vLLM both read silence."""
    return {"draft_vocab_size": len(tensors[LM_HEAD])} if LM_HEAD in tensors else {}


def _layer_fields(config: HeadConfig) -> dict[str, Any]:
    """The one layer, with its rotary embedding in the spelling that every project reads."""
    fields: dict[str, Any] = {
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_width,
        "num_hidden_layers": 1,
        "hidden_act": config.hidden_act,
        "rms_norm_eps": config.rms_norm_eps,
    }
    rope = config.rope
    fields["rope_theta"] = rope.pop("rope_theta")
    if config.rotated_width != config.head_width:
        fields["partial_rotary_factor"] = _share(config.rotated_width, config.head_width)
    given = config.rope_parameters or config.rope_scaling or {}
    sections = {name: given[name] for name in SECTIONS if name in given}
    if rope["rope_type"] != "default" or sections:
        fields["rope_scaling"] = {**rope, **sections, "type": rope["rope_type"]}
    if config.max_position_embeddings is not None:
        fields["max_position_embeddings"] = config.max_position_embeddings
    return fields


def _share(rotated: int, width: int) -> float:
    """A share of a head of which readers, who round down, make the same dimensions again."""
    share = rotated / width
    return share if int(width * share) == rotated else math.nextafter(share, 1.0)


def _dtype_name(tensors: Mapping[str, Tensor]) -> str:
    return str(tensors[f"{OUTPUT}.weight"].dtype).removeprefix("torch.")


_WRITERS = {
    HeadFormat.SAFEAILAB: _safeailab_config,
    HeadFormat.SGLANG: _sglang_config,
    HeadFormat.SPECULATORS: _speculators_config,
}
