"""Who wrote a head: its format and its algorithm, told from its config and its tensor names.

`safeailab` is SafeAILab/EAGLE and SpecForge, `sglang` is what SGLang, vLLM, TorchSpec and ModelOpt
exchange, `speculators` nests the layer's config. The layer of an EAGLE-3 head is `midlayer` in the
first, either `midlayer` or `layers.0` in the second. The format decides how two fields are read that
projects spell alike and mean differently: the auxiliary layer ids (`aux_layers.py`) and
`norm_output` (`feeds_normed`).
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

from eaglebench.errors import CheckpointError
from eaglebench.model.checkpoint import bare_name

_FIRST_LAYER = "midlayer."
_OF_EAGLE3 = "hidden_norm.weight"
_OF_ENGINES = ("_torchspec_version", "eagle_aux_hidden_state_layer_ids")
_SGLANG_EAGLE = {"LlamaForCausalLMEagle", "EagleLlamaForCausalLM"}


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
    if kind is not None:
        if kind not in {"eagle", "eagle3"}:
            raise CheckpointError(
                f"a speculator of type {kind!r} is no EAGLE head",
                hint="expected speculators_model_type eagle or eagle3",
            )
        return Algorithm.EAGLE3 if kind == "eagle3" else Algorithm.EAGLE
    for name in architectures(raw):
        if "eagle" in name.lower():
            return Algorithm.EAGLE3 if "eagle3" in name.lower() else Algorithm.EAGLE
    is_eagle3 = any(name.endswith(_OF_EAGLE3) for name in names)
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


def feeds_normed(norm_output: bool | None, form: HeadFormat) -> tuple[bool, str | None]:
    """Whether the next level gets the normed state, and a warning if that is doubtful.

    SGLang, vLLM, TorchSpec and speculators: false unless given, and true feeds the state behind
    the final norm to the next level (EAGLE 3.1). SpecForge up to 0.2.0: true unless given, and
    true is plain EAGLE-3, a norm in front of lm_head alone; what it trains for false no engine
    computes. Its later versions follow SGLang under the same names, hence the warning.

    Raises:
        CheckpointError: false in SpecForge's format, which is one of two different heads.
    """
    if form is not HeadFormat.SAFEAILAB or norm_output is None:
        return bool(norm_output), None
    if norm_output is False:
        raise CheckpointError(
            "norm_output is false: in SpecForge up to 0.2.0 that is a head without a norm in front "
            "of lm_head, which no engine computes; everywhere else it is plain EAGLE-3",
            hint="if the head is plain EAGLE-3, take norm_output out of its config.json; else train "
            "or export it with norm_output true",
        )
    return False, (
        "norm_output is read as SpecForge up to 0.2.0 means it (a norm in front of lm_head alone); "
        "if the normed state goes on to the next level, name the auxiliary layers at the top level "
        "of config.json, as vLLM does"
    )
