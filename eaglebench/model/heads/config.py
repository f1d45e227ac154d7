"""`config.json` of a head, in the forms that are published.

Every field is read, known to be harmless, or refused by name (`fields.py`). A field that says null
says nothing. Values are taken as JSON has them: true is no number and "8" none either.

How far back the layer sees has two spellings. `layer_types` says it layer by layer. Without it
`use_sliding_window` says it for all layers; where that is silent too, the family decides: Mistral's
layers slide when there is a `sliding_window`, Qwen's don't, and Llama has no such word.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError
from pydantic_core import ErrorDetails

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.fields import check_unread
from eaglebench.model.heads.rope import SHARE, SHARE_WORDS, read_rope, read_shares, rotated_width

NESTED = "transformer_layer_config"
BLOCK = "eagle_config"
DEFAULT_NUM_AUX = 3
FULL, SLIDING = "full_attention", "sliding_attention"
_SAY = "say which with --draft-config sliding_window=N, or sliding_window=null for none"
ACTIVATIONS = ("silu", "swish", "gelu", "gelu_pytorch_tanh", "relu")
_OUTER_DECIDES = {"architectures", "model_type", "tie_word_embeddings"}
"""What a speculators file says of the head outside, and of the layer's family inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """What there is to know of a field besides its kind and its default.

    Attributes:
        words: what other projects call it.
        in_both: some files say it in `eagle_config` instead of at the top.
        of_eagle3: an EAGLE-1 head has no place for it.
        is_fixed: it can't be said otherwise than the file does.
        is_counted: nor can this one, because projects count differently.
    """

    words: tuple[str, ...] = ()
    in_both: bool = False
    of_eagle3: bool = False
    is_fixed: bool = False
    is_counted: bool = False


_Strict = ConfigDict(extra="forbid", frozen=True, strict=True)
_Size = Annotated[int, Field(ge=1, le=2**31)]
_LayerIds = Annotated[list[int] | None, Says(is_counted=True)]
_Fixed = Says(is_fixed=True)
_OfEagle3 = Says(of_eagle3=True)
_InBoth = Says(of_eagle3=True, in_both=True)


class EagleBlock(BaseModel):
    """The nested `eagle_config`."""

    model_config = _Strict

    eagle_aux_hidden_state_layer_ids: _LayerIds = None
    target_layer_ids: _LayerIds = None
    aux_hidden_states_layers: _LayerIds = None
    use_aux_hidden_state: bool = True


class HeadConfig(BaseModel):
    """What a head's shape and maths are read from: the one table of the fields that are read."""

    model_config = _Strict

    architectures: Annotated[list[str] | None, _Fixed] = None
    speculators_model_type: Annotated[str | None, _Fixed] = None
    model_type: str | None = None
    hidden_size: _Size
    intermediate_size: _Size
    num_attention_heads: _Size
    num_key_value_heads: _Size | None = None
    head_dim: _Size | None = None
    num_hidden_layers: Annotated[PositiveInt, _Fixed] = 1
    hidden_act: Annotated[str, Says(words=("hidden_activation",))] = "silu"
    rms_norm_eps: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-6
    rope_theta: float | None = None
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    partial_rotary_factor: Annotated[float | None, Says(words=SHARE_WORDS)] = None
    rotary_dim: Annotated[int | None, Says(words=("rotary_ndims",))] = None
    max_position_embeddings: _Size | None = None
    layer_types: list[str] | None = None
    sliding_window: _Size | None = None
    use_sliding_window: bool | None = None
    max_window_layers: Annotated[int, Field(ge=0)] | None = None
    vocab_size: _Size
    draft_vocab_size: _Size | None = None
    tie_word_embeddings: bool = False
    target_hidden_size: _Size | None = None
    norm_before_residual: Annotated[bool | None, _OfEagle3] = None
    norm_before_fc: Annotated[bool | None, _InBoth] = None
    norm_output: Annotated[  # TensorRT-LLM has another word
        bool | None, Says(words=("return_hidden_post_norm",), of_eagle3=True, in_both=True)
    ] = None
    fc_norm: Annotated[bool | None, _InBoth] = None
    use_aux_norm: Annotated[bool, _OfEagle3] = False
    bias: bool | None = None
    attention_bias: bool | None = None
    qkv_bias: bool | None = None
    mlp_bias: bool | None = None
    fusion_bias: bool | None = None
    use_qk_norm: Annotated[bool | None, Says(words=("qk_norm", "qk_layernorm"))] = None
    has_lm_head: Annotated[bool | None, Says(in_both=True)] = None
    num_aux_hidden_states: Annotated[
        Annotated[int, Field(ge=1, le=1024)] | None, Says(is_counted=True)
    ] = None
    eagle_aux_hidden_state_layer_ids: _LayerIds = None
    aux_hidden_state_layer_ids: _LayerIds = None
    target_layer_ids: _LayerIds = None
    aux_hidden_states_layers: _LayerIds = None
    eagle_config: Annotated[EagleBlock, _Fixed] = Field(default_factory=EagleBlock)

    @property
    def num_kv_heads(self) -> int:
        """KV heads of the one layer."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def head_width(self) -> int:
        """Width of one attention head."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def window(self) -> int | None:
        """Positions the layer sees, where its config says that it slides."""
        return _read_window(self)

    @property
    def rope(self) -> dict[str, Any]:
        """Rotary settings as `transformers` names them; see `rope.read_rope`."""
        return read_rope(self.rope_parameters, self.rope_scaling, self.rope_theta)

    @property
    def rope_block(self) -> dict[str, Any]:
        """Rotary settings as the file has them, in the newer of its spellings."""
        return self.rope_parameters or self.rope_scaling or {}

    @property
    def rotated_width(self) -> int:
        """Dimensions of an attention head that are rotated."""
        blocks = {"rope_parameters": self.rope_parameters, "rope_scaling": self.rope_scaling}
        shares = read_shares(blocks)
        if self.partial_rotary_factor is not None:
            shares[SHARE] = self.partial_rotary_factor
        return rotated_width(self.head_width, shares, self.rotary_dim)

    @property
    def takes_aux(self) -> bool:
        """Whether the features are several states, or the one behind the target's final norm."""
        return self.eagle_config.use_aux_hidden_state

    @property
    def norms_joined(self) -> bool:
        """Whether the joined states are normed in front of fc (`norm_before_fc`)."""
        return bool(self.norm_before_fc)

    @property
    def norms_each(self) -> bool:
        """Whether each state is normed in front of fc (`fc_norm`, once `use_aux_norm`)."""
        return bool(self.fc_norm) or self.use_aux_norm


SAYS = {
    name: next((each for each in field.metadata if isinstance(each, Says)), Says())
    for name, field in HeadConfig.model_fields.items()
}
KNOWN = frozenset(SAYS)
ALIASES = {word: name for name, says in SAYS.items() for word in says.words}
"""Another project's word: ours."""
_IN_BOTH = frozenset(name for name, says in SAYS.items() if says.in_both)
_KNOWN_NESTED = _IN_BOTH | EagleBlock.model_fields.keys()


def read_raw_config(folder: Path) -> dict[str, Any]:
    """A head's `config.json` as it stands, with a BOM or none; CheckpointError if no JSON object."""
    path = folder / "config.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CheckpointError(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not the config of a head: {error}") from error
    if not isinstance(raw, dict):
        raise CheckpointError(f"{path} is not the config of a head: no JSON object")
    return raw


def flat_fields(raw: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The fields that say something, nested ones too; a CheckpointError if two disagree."""
    nested = raw.get(NESTED)
    if nested is not None and not isinstance(nested, dict):
        raise CheckpointError(f"{path}: {NESTED} is no JSON object")
    inner = _said(nested or {})
    outer = {name: value for name, value in _said(raw).items() if name != NESTED}
    for name in sorted(set(inner) & set(outer) & KNOWN - _OUTER_DECIDES):
        if inner[name] != outer[name]:
            raise CheckpointError(
                f"{path}: {name} is {outer[name]!r} at the top level and {inner[name]!r} in {NESTED}"
            )
    return inner | outer


def parse_config(raw: Mapping[str, Any], path: Path) -> HeadConfig:
    """The fields of a config, all of them accounted for.

    Raises:
        CheckpointError: a field is missing, wrong or unknown, contradicts another, or asks for what
            is not computed here.
    """
    try:
        config = HeadConfig.model_validate(_accounted(flat_fields(raw, path)))
    except ValidationError as error:
        found = "; ".join(_explain(details) for details in error.errors(include_url=False))
        raise CheckpointError(f"{path} is not the config of a head: {found}") from error
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error.message}", hint=error.hint) from error
    unknown = _unknown_maths(config)
    if unknown:
        raise CheckpointError(f"{path}: {unknown}")
    _ = (config.window, config.rope, config.rotated_width)
    return config


def _said(block: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if value is not None}


def _accounted(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are read, under our names."""
    read = _read_fields(fields, "", KNOWN)
    block = read.pop(BLOCK, {})
    if not isinstance(block, dict):
        raise CheckpointError(f"{BLOCK} is {block!r}; expected a JSON object")
    nested = _read_fields(_said(block), f"{BLOCK}.", _KNOWN_NESTED)
    for name in sorted(_IN_BOTH & nested.keys()):
        value = nested.pop(name)
        if read.setdefault(name, value) != value:
            raise CheckpointError(
                f"{name} is {read[name]!r} at the top level and {value!r} in {BLOCK}"
            )
    return {**read, BLOCK: nested}


def _read_fields(fields: Mapping[str, Any], where: str, known: frozenset[str]) -> dict[str, Any]:
    """Fields under our names, the others checked; a CheckpointError where two words disagree."""
    found: dict[str, Any] = {}
    for word, value in fields.items():
        name = ALIASES.get(word, word)
        if name not in known:
            check_unread(word, value, where, known)
        elif found.setdefault(name, value) != value:
            raise CheckpointError(f"{where}{name} is {found[name]!r}, {word} {value!r}")
    return found


def _explain(details: ErrorDetails) -> str:
    """One finding of pydantic, short."""
    where = ".".join(str(part) for part in details["loc"])
    if details["type"] == "missing":
        return f"{where} is missing"
    shown = repr(details["input"])
    return f"{where} is {shown if len(shown) < 80 else shown[:77] + '...'}: {details['msg']}"


def _unknown_maths(config: HeadConfig) -> str | None:
    """What the config asks for and is not computed here."""
    if config.hidden_act not in ACTIVATIONS:
        return f"hidden_act {config.hidden_act!r}; known: {', '.join(ACTIVATIONS)}"
    if config.num_attention_heads % config.num_kv_heads:
        return (
            f"num_attention_heads {config.num_attention_heads} is no multiple of "
            f"num_key_value_heads {config.num_kv_heads}"
        )
    if not config.head_dim and config.hidden_size % config.num_attention_heads:
        return (
            f"hidden_size {config.hidden_size} is no multiple of num_attention_heads "
            f"{config.num_attention_heads}, and head_dim is not given"
        )
    return None


def _read_window(config: HeadConfig) -> int | None:
    """Positions the layer sees, the current one included; None is all.

    Raises:
        CheckpointError: it is said in two ways that don't agree, or can be read in two.
    """
    size, flag = config.sliding_window, config.use_sliding_window
    slides = _by_layer_type(config.layer_types or [])
    if slides is not None and flag is not None and slides != flag and (size or slides):
        raise CheckpointError(
            f"layer_types and use_sliding_window ({str(flag).lower()}) don't agree on whether the "
            "layer has a window",
            hint=_SAY,
        )
    if slides is None:
        slides = _by_flag(config)
    if slides and size is None:
        word = f"layer_types {SLIDING}" if config.layer_types else "use_sliding_window"
        raise CheckpointError(f"{word} and no sliding_window", hint=_SAY)
    return size if slides else None


def _by_layer_type(layer_types: list[str]) -> bool | None:
    """By the type of the head's layer, or by a list that was copied from the target."""
    found = set(layer_types)
    unknown = sorted(found - {FULL, SLIDING})
    if unknown:
        raise CheckpointError(f"layer_types: layers of type {', '.join(unknown)} are unknown")
    if len(found) > 1:
        raise CheckpointError(
            f"layer_types names {len(layer_types)} layers of two types; which of them is the "
            "head's one layer is not said",
            hint=_SAY,
        )
    return SLIDING in found if found else None


def _by_flag(config: HeadConfig) -> bool:
    size, slides = config.sliding_window, config.use_sliding_window
    if slides and config.max_window_layers:  # so many layers come before the first one that slides
        raise CheckpointError(
            f"use_sliding_window is true and max_window_layers {config.max_window_layers}: whether the one "
            "layer comes before or after those is not said",
            hint=_SAY,
        )
    if slides is not None or size is None:
        return bool(slides)
    if config.model_type not in {"mistral", "qwen2", "qwen3"}:
        raise CheckpointError(
            f"sliding_window is {size}, and neither layer_types nor use_sliding_window say whether "
            "the layer has it",
            hint=_SAY,
        )
    return config.model_type == "mistral"
