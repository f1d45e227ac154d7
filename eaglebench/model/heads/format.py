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
                f"a speculator of type {kind!r} (speculators_model_type) is no EAGLE head",
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


def feeds_normed(
    norm_output: bool | None, form: HeadFormat, *, is_settled: bool
) -> tuple[bool, str | None]:
    """Whether the next level gets the normed state, and a warning if that is doubtful.

    True is EAGLE 3.1: the state behind the final norm goes to the next level as well as to lm_head.
    False and silence are plain EAGLE-3, with a norm in front of lm_head alone. SGLang, vLLM,
    TensorRT-LLM, TorchSpec, speculators and SpecForge since its #879 read it so. Before, SpecForge
    wrote true for plain EAGLE-3 and false for a head without a final norm, which no engine computes.

    Args:
        norm_output: as the config says it.
        form: whose words it uses.
        is_settled: whether `fc_norm`, which is of EAGLE 3.1, stands beside it, or the user said it.
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
