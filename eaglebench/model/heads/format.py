"""What a head is and who wrote it: kind, format and algorithm, told from its config and its tensors.

`safeailab` is SafeAILab/EAGLE and SpecForge, `sglang` is what SGLang, vLLM, TorchSpec and ModelOpt
exchange, `speculators` nests the layer's config. The layer of an EAGLE-3 head is `midlayer` in the
first, either `midlayer` or `layers.0` in the second. The format decides how two fields are read that
projects spell alike and mean differently: the auxiliary layer ids (`aux_layers.py`) and
`norm_output` (`feeds_normed`).

Other kinds of draft models are told by what they say they are, before shapes and counts are asked, so
that the answer is "a DFlash head" and not "4 layers; expected 1".
"""

import re
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from eaglebench.errors import CheckpointError
from eaglebench.model.checkpoint import bare_name, canonical_name

_FIRST_LAYER = "midlayer."
_OF_EAGLE3 = "hidden_norm.weight"
_OF_ENGINES = ("_torchspec_version", "eagle_aux_hidden_state_layer_ids")
_SGLANG_EAGLE = {"LlamaForCausalLMEagle", "EagleLlamaForCausalLM"}
_LAYER = re.compile(r"layers\.(\d+)\.")


class HeadFormat(StrEnum):
    """Whose names and fields a head uses."""

    SAFEAILAB = "safeailab"
    SGLANG = "sglang"
    SPECULATORS = "speculators"


class Algorithm(StrEnum):
    """The kind of maths; EAGLE-1 and EAGLE-2 share their weights and their name."""

    EAGLE = "EAGLE"
    EAGLE3 = "EAGLE3"


def recognise_algorithm(raw: Mapping[str, Any], names: Collection[str]) -> Algorithm:
    """By what the config says, else by the tensors: only an EAGLE-3 layer norms its features.

    Raises:
        CheckpointError: the config names a speculator that is no EAGLE head.
    """
    kind = raw.get("speculators_model_type")
    if kind is not None and kind not in {"eagle", "eagle3"}:
        raise CheckpointError(
            f"a speculator of type {kind!r} (speculators_model_type) is no EAGLE head",
            hint="expected speculators_model_type eagle or eagle3",
        )
    said = [kind] if kind is not None else [name.lower() for name in architectures(raw)]
    named = next((name for name in said if "eagle" in name), None)
    is_eagle3 = (
        any(name.endswith(_OF_EAGLE3) for name in names) if named is None else "eagle3" in named
    )
    return Algorithm.EAGLE3 if is_eagle3 else Algorithm.EAGLE


def recognise_format(
    raw: Mapping[str, Any], names: Collection[str], algorithm: Algorithm
) -> HeadFormat:
    """By the nested layer config, else by how the decoder layer or the architecture is called.

    Auxiliary layers at the top level of the config are vLLM's word, whatever the layer's name.
    """
    if "speculators_model_type" in raw or "transformer_layer_config" in raw:
        return HeadFormat.SPECULATORS
    if algorithm is Algorithm.EAGLE:
        is_renamed = bool(_SGLANG_EAGLE.intersection(architectures(raw)))
        return HeadFormat.SGLANG if is_renamed else HeadFormat.SAFEAILAB
    is_trainer = any(bare_name(name).startswith(_FIRST_LAYER) for name in names)
    is_engines = any(raw.get(name) is not None for name in _OF_ENGINES)
    return HeadFormat.SAFEAILAB if is_trainer and not is_engines else HeadFormat.SGLANG


def architectures(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """The architectures a config names."""
    return tuple(raw.get("architectures") or ())


def feeds_normed(
    norm_output: bool | None, form: HeadFormat, *, is_settled: bool
) -> tuple[bool, str | None]:
    """Whether the next level gets the normed state, and a warning if that is doubtful.

    True is EAGLE 3.1: the state behind the final norm goes to the next level as well as to lm_head.
    False and silence are plain EAGLE-3, with a norm in front of lm_head alone. SGLang, vLLM,
    TensorRT-LLM, TorchSpec, speculators and SpecForge since its #879 read it so. Before, SpecForge
    wrote true for plain EAGLE-3 and false for a head without a final norm, which no engine computes.
    It is settled where `fc_norm`, which is of EAGLE 3.1, stands beside it, or the user said it.
    """
    if form is not HeadFormat.SAFEAILAB or norm_output is None or is_settled:
        return bool(norm_output), None
    if norm_output:
        return True, (
            "norm_output true is read as EAGLE 3.1, as engines do (the normed state goes on to the "
            "next level); SpecForge before its #879 wrote it for plain EAGLE-3, which "
            "--draft-config norm_output=false would compute"
        )
    return False, (
        "norm_output false is read as plain EAGLE-3, as engines do; SpecForge before its #879 meant "
        "a head without a norm in front of lm_head, which no engine computes"
    )


class _Kind(NamedTuple):
    """What gives a kind away, each some words with spaces between.

    Attributes:
        what: in words.
        names: parts of an architecture, a model_type or a speculators_model_type, in lower case.
        fields: fields that only it has, when they say anything.
        tensors: parts of tensor names.
    """

    what: str
    names: str = ""
    fields: str = ""
    tensors: str = ""


_KINDS = (
    _Kind(
        "a P-EAGLE head, which drafts all positions at once",
        "peagle p_eagle p-eagle paralleleagle eagle3parallel",
        "parallel_drafting ptd_token_id pard_token mask_hidden",
        "mask_hidden",
    ),
    _Kind(
        "a DFlash head, which drafts blocks by diffusion",
        "dflash",
        "dflash_config dflash_block_size",
    ),
    _Kind("a DSpark head", "dspark", "dspark_block_size dspark_target_layer_ids markov_rank"),
    _Kind(
        "a head with latent attention (MLA)",
        "deepseek kimi_k kimik mla",
        "kv_lora_rank q_lora_rank qk_rope_head_dim qk_nope_head_dim",
        "kv_a_proj kv_b_proj q_a_proj q_b_proj",
    ),
    _Kind(
        "a layer for multi-token prediction (MTP, NextN) of its target",
        "mtp nextn",
        "num_nextn_predict_layers n_predict mtp_num_hidden_layers",
        "eh_proj. enorm. hnorm.",
    ),
    _Kind("a Medusa head", "medusa", "medusa_num_heads medusa_num_layers", "medusa_head"),
    _Kind("an MLP speculator", "mlp_speculator mlpspeculator"),
    _Kind("a Hydra head", "hydra", "hydra_num_heads"),
    _Kind("a head with parallel heads of ModelOpt's", tensors="parallel_draft_heads."),
    _Kind(
        "a head with a mixture of experts",
        fields="num_experts num_local_experts n_routed_experts moe_intermediate_size",
        tensors=".experts. block_sparse_moe",
    ),
)
LLAMA_LIKE = frozenset(
    {"llama", "qwen2", "qwen3", "mistral", "eagle", "eagle3", "speculator_model", "llama_eagle3"}
)
"""`model_type`s whose layer is the one computed here, with or without norms of q and k."""


def refuse_other_kinds(fields: Mapping[str, Any], tensors: Collection[str]) -> None:
    """Refuse what is no EAGLE head, by fields of a config and names of tensors.

    Raises:
        CheckpointError: it says that it is something else; what and by which field is named.
    """
    for kind in _KINDS:
        sign = next(_signs(kind, fields, tensors), None)
        if sign is not None:
            raise CheckpointError(
                f"the draft model is {kind.what} ({sign}); only EAGLE-1, EAGLE-2 and EAGLE-3 heads "
                "of one decoder layer of the Llama shape are computed here, this is no EAGLE head "
                "of theirs",
                hint="name another --draft-model",
            )
    kind_name = fields.get("model_type")
    if isinstance(kind_name, str) and kind_name not in LLAMA_LIKE:
        raise CheckpointError(
            f"model_type is {kind_name!r}, whose layers are not known to be those of Llama",
            hint="if the head's are, --draft-config model_type=llama says so",
        )


def count_layers(tensors: Collection[str]) -> int:
    """Decoder layers in the file."""
    found = (_LAYER.match(canonical_name(name)) for name in tensors)
    return len({int(match[1]) for match in found if match})


def check_layers(said: int, tensors: Collection[str]) -> str | None:
    """Nothing, or the warning that `num_hidden_layers` was copied from somewhere.

    Raises:
        CheckpointError: the file has another number of layers than one.
    """
    found = count_layers(tensors)
    if found > 1 and not any("fc." in name for name in tensors):
        raise CheckpointError(
            f"the file holds a whole model of {found} layers, and nothing that joins states of a "
            "target with tokens (fc): it is no EAGLE head"
        )
    if found > 1:
        raise CheckpointError(
            f"the file has {found} decoder layers (num_hidden_layers {said}); a head has 1"
        )
    if said == 1:
        return None
    return (
        f"num_hidden_layers is {said}, yet the file has one decoder layer; taken as 1 (the number "
        "seems to be the target's)"
    )


def _signs(kind: _Kind, fields: Mapping[str, Any], tensors: Collection[str]) -> Iterator[str]:
    for name in ("speculators_model_type", "architectures", "model_type"):
        value = fields.get(name)
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str) and any(part in word.lower() for part in kind.names.split()):
                yield f"{name} {word!r}"
    own = [name for name in kind.fields.split() if fields.get(name)]
    own += [name for name in tensors if any(part in name for part in kind.tensors.split())]
    yield from (f"it has {name}" for name in own)
