"""Writing a head of one format as another: names, tables, biases, and what can't be said.

Some engines make a bias for every matrix of a group, or for fc in any case; where a head has none
there, zeros are written, so that nothing is left as it happened to be in memory. Layer ids stand at
the top level as vLLM counts and in `eagle_config` as SGLang does, so that both read the same states.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from eaglebench.errors import CheckpointError, StorageError, UsageError
from eaglebench.files import give_usual_rights
from eaglebench.model.heads.aux_layers import (
    AuxLayers,
    count_as_output,
    count_aux,
    usual_layers,
)
from eaglebench.model.heads.config import BLOCK, DEFAULT_NUM_AUX, HeadConfig, flat_fields
from eaglebench.model.heads.fields import CARRIED
from eaglebench.model.heads.fit import TargetFacts, fit_to
from eaglebench.model.heads.format import Algorithm, HeadFormat
from eaglebench.model.heads.places import LAYER, LM_HEAD, MLP, OUTPUT, QKV, QUERY_NORM, has_bias
from eaglebench.model.heads.published import PublishedHead
from eaglebench.model.heads.rope import SECTIONS
from eaglebench.model.vocabulary import target_id_table, written_tables

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
    if to is HeadFormat.SPECULATORS:
        written = _nested_fields(head, tensors, aux, verifier)
    else:
        written = _flat_fields(head, to, tensors, aux)
    said = flat_fields(head.raw, head.path)
    kept = {name: said[name] for name in sorted(CARRIED & said.keys() - written.keys())}
    return {**written, **kept}


def _flat_fields(
    head: PublishedHead, to: HeadFormat, tensors: Mapping[str, Tensor], aux: AuxLayers
) -> dict[str, Any]:
    """All at the top level, as engines and most trainers have it."""
    config, is_sglang = head.config, to is HeadFormat.SGLANG
    is_eagle3 = head.is_eagle3
    kind = "Eagle3" if is_eagle3 else "Eagle" if is_sglang else ""
    fields: dict[str, Any] = {
        "architectures": [f"LlamaForCausalLM{kind}"],
        "model_type": "llama",
        **_layer_fields(config),
        "vocab_size": config.vocab_size,
        "tie_word_embeddings": is_eagle3 and config.tie_word_embeddings and LM_HEAD not in tensors,
        "torch_dtype": _dtype_name(tensors),
    }
    if is_eagle3 and LM_HEAD in tensors:  # SGLang and vLLM both read silence as the target's
        fields["draft_vocab_size"] = len(tensors[LM_HEAD])
    if config.target_hidden_size is not None:
        fields["target_hidden_size"] = config.target_hidden_size
    has_qkv_bias = has_bias(tensors, QKV)
    if not is_sglang:
        fields |= {"qkv_bias": True} if has_qkv_bias else {}
        return fields if is_eagle3 else {**fields, "bias": "fc.bias" in tensors}
    if not is_eagle3:
        # `bias` would mean the biases of attention there; fc has one in any case
        return {**fields, "attention_bias": has_qkv_bias}
    block: dict[str, Any] = {"use_aux_hidden_state": config.takes_aux}
    if aux.ids is not None and config.takes_aux:
        fields["eagle_aux_hidden_state_layer_ids"] = list(aux.ids)
        block["eagle_aux_hidden_state_layer_ids"] = list(count_as_output(aux.ids))
        fields["num_aux_hidden_states"] = len(aux.ids)
    flags = {"bias": "fc.bias" in tensors, **_norms(head)}
    return {**fields, **{name: True for name, is_on in flags.items() if is_on}, BLOCK: block}


def _norms(head: PublishedHead) -> dict[str, bool]:
    """The variants of EAGLE-3 that formats of engines have flags for."""
    config = head.config
    return {
        "norm_before_fc": config.norms_joined,
        "fc_norm": config.norms_each,
        "norm_output": head.feeds_normed,
    }


def _nested_fields(
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
    if not head.is_eagle3:
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
        **_norms(head),
        "tie_word_embeddings": False,
    }


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
    given = config.rope_block
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


@dataclass(frozen=True, slots=True)
class ConvertedHead:
    """A config and tensors by their names in the file, ready to be written.

    `warnings` says what was doubtful in the head that was read, and which readers of the format
    would not do it justice.
    """

    config: dict[str, Any]
    tensors: dict[str, Tensor]
    warnings: tuple[str, ...]


def convert(
    head: PublishedHead,
    to: HeadFormat,
    *,
    target: TargetFacts | None,
    verifier: Verifier,
    aux_layer_ids: Sequence[int] | None = None,
) -> ConvertedHead:
    """A head in another format; its config says which states feed it unless `aux_layer_ids` does.

    Raises:
        CheckpointError: the head does not fit the target, or the format can't say what it is;
            everything that stands in the way is listed.
    """
    num_layers = target.num_layers if target else None
    aux = head.aux_layers(num_layers, aux_layer_ids)
    if target is not None:
        fit_to(head, aux, target)
    obstacles = [*_head_obstacles(head, to), *_aux_obstacles(aux, to, num_layers)]
    if obstacles:
        raise CheckpointError(
            f"{head.path} can't be written as {to}, which can't say: {'; '.join(obstacles)}",
            hint=f"other formats: {', '.join(form for form in HeadFormat if form is not to)}",
        )
    tensors = _with_biases(head, to)
    if head.is_eagle3:
        tensors |= _tables(head, target.vocab_size if target else head.config.vocab_size)
    config = write_config(head, to, tensors=tensors, aux=aux, verifier=verifier)
    named = {_rename(n, head.algorithm, to): t for n, t in tensors.items()}
    doubts = (aux.warning,) if aux.warning else ()
    return ConvertedHead(config, named, (*doubts, *_old_readers(head, to)))


def save_converted(converted: ConvertedHead, folder: Path) -> None:
    """Write `config.json` and `model.safetensors` into a new or empty folder.

    Raises:
        UsageError: something lies there already.
        StorageError: it can't be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; expected a new folder", hint="name another one")
    tensors = {name: tensor.contiguous().clone() for name, tensor in converted.tensors.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        give_usual_rights(folder / "model.safetensors")
        text = json.dumps(converted.config, indent=2) + "\n"
        (folder / "config.json").write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{folder} can't be written: {error.strerror}") from error


def _with_biases(head: PublishedHead, to: HeadFormat) -> dict[str, Tensor]:
    """The head's tensors, with zeros where readers of the format expect a bias."""
    tensors = dict(head.placed.tensors)
    groups: list[tuple[str, ...]] = []
    if to is HeadFormat.SPECULATORS:
        groups = [(*QKV, OUTPUT), MLP]
    elif to is HeadFormat.SGLANG and not head.is_eagle3:
        groups = [(*QKV, OUTPUT)]
        tensors.setdefault("fc.bias", _zeros(tensors, "fc"))
    elif to is HeadFormat.SGLANG:
        groups = [("fc", OUTPUT)]  # both come with the field `bias`
    for group in groups:
        if has_bias(tensors, group):
            for name in group:
                tensors.setdefault(f"{name}.bias", _zeros(tensors, name))
    return tensors


def _zeros(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    weight = tensors[f"{name}.weight"]
    return weight.new_zeros(len(weight))


def _tables(head: PublishedHead, vocab_size: int) -> dict[str, Tensor]:
    """`d2t` as offsets and `t2d` as marks, where the vocabulary is reduced."""
    given = head.placed.tensors
    if "d2t" not in given:
        return {}
    rows = len(given[LM_HEAD])
    table, _ = target_id_table(
        given["d2t"], given.get("t2d"), draft_vocab_size=rows, vocab_size=vocab_size
    )
    return written_tables(table, vocab_size)


def _rename(place: str, algorithm: Algorithm, to: HeadFormat) -> str:
    """The name of a place in a format."""
    if algorithm is Algorithm.EAGLE3:
        # SGLang drops tensors called layers.0 without a word, vLLM knows both names
        return place if to is HeadFormat.SPECULATORS else place.replace(LAYER, "midlayer.")
    if to is HeadFormat.SPECULATORS:
        return place.replace(LAYER, "transformer.").replace("fc.", "fusion_fc.", 1)
    return place


def _head_obstacles(head: PublishedHead, to: HeadFormat) -> list[str]:
    """What the head is or has that the format has no word for."""
    config, tensors = head.config, head.placed.tensors
    is_eagle3 = head.is_eagle3
    is_trainer, is_sglang, is_nested = (to is form for form in HeadFormat)
    has_head_norms = QUERY_NORM in tensors
    found = {
        "an lm_head of its own": not is_eagle3 and LM_HEAD in tensors,
        "biases of q, k and v": is_eagle3 and has_bias(tensors, QKV) and is_sglang,
        "a bias of o": has_bias(tensors, [OUTPUT]) and is_trainer,
        "biases in the MLP": has_bias(tensors, MLP) and (not is_nested or has_head_norms),
        "norms of q and k": has_head_norms and not (is_nested and is_eagle3),
        "a sliding window": config.window is not None and not is_nested,
        "partial rotation (partial_rotary_factor)": config.rotated_width != config.head_width
        and not is_sglang,
    }
    if is_eagle3:
        found |= {
            "an lm_head that is the target's": LM_HEAD not in tensors and not is_sglang,
            "a bias of fc": "fc.bias" in tensors and not is_sglang,
            "features without auxiliary layers": not config.takes_aux and not is_sglang,
            "norm_before_residual": bool(config.norm_before_residual) and not is_nested,
            **{name: is_on and is_trainer for name, is_on in _norms(head).items()},
        }
    return [text for text, is_one in found.items() if is_one]


def _old_readers(head: PublishedHead, to: HeadFormat) -> tuple[str, ...]:
    """Versions of engines that read the format and would run another head without a word."""
    if to is not HeadFormat.SGLANG or not head.is_eagle3:
        return ()
    norms = _norms(head)
    ignored = {
        **{name: norms[name] for name in ("norm_output", "norm_before_fc", "fc_norm")},
        "num_aux_hidden_states": count_aux(head.config) != DEFAULT_NUM_AUX,
        "use_aux_hidden_state": not head.config.takes_aux,
    }
    found = [name for name, is_asked in ignored.items() if is_asked]
    if not found:
        return ()
    return (f"SGLang 0.5.4 ignores {', '.join(found)} and would run another head; use a later one",)


def _aux_obstacles(aux: AuxLayers, to: HeadFormat, num_layers: int | None) -> list[str]:
    """Ids that the format can't hold."""
    if aux.ids is None:
        return []
    if to is HeadFormat.SGLANG and 0 in aux.ids:
        return ["the embeddings (auxiliary layer 0) as features"]
    if to is not HeadFormat.SAFEAILAB:
        return []
    if num_layers is None:
        return [f"auxiliary layers {aux.ids}, unless they are the default: name the target"]
    usual = usual_layers(num_layers)
    return [] if aux.ids == usual else [f"auxiliary layers {aux.ids} instead of {usual}"]
