"""`config.json` of a head, in the forms that are published."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    field_validator,
)
from pydantic_core import ErrorDetails
from transformers.activations import ACT2FN

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.rope import read_rope

NESTED = "transformer_layer_config"
SLIDING = "sliding_attention"
DEFAULT_NUM_AUX = 3


class EagleBlock(BaseModel):
    """The nested `eagle_config`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    eagle_aux_hidden_state_layer_ids: list[int] | None = None
    use_aux_hidden_state: bool = True
    norm_before_fc: bool | None = None


class HeadConfig(BaseModel):
    """What a head's shape and maths are read from; other fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    architectures: list[str] | None = None
    hidden_size: PositiveInt
    intermediate_size: PositiveInt
    num_attention_heads: PositiveInt
    num_key_value_heads: PositiveInt | None = None
    head_dim: PositiveInt | None = None
    num_hidden_layers: int = 1
    hidden_act: str = "silu"
    rms_norm_eps: float = 1e-6
    rope_theta: float | None = None
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    partial_rotary_factor: float = 1.0
    max_position_embeddings: PositiveInt | None = None
    layer_types: list[str] | None = None
    sliding_window: PositiveInt | None = None
    vocab_size: PositiveInt
    draft_vocab_size: PositiveInt | None = None
    tie_word_embeddings: bool = False
    target_hidden_size: int | None = None
    norm_before_residual: bool | None = None
    norm_before_fc: bool | None = None
    norm_output: bool | None = None
    fc_norm: bool | None = None
    use_aux_norm: bool = False
    num_aux_hidden_states: int | None = None
    eagle_aux_hidden_state_layer_ids: list[int] | None = None
    eagle_config: EagleBlock = Field(default_factory=EagleBlock)
    quantization_config: dict[str, Any] | None = None

    @field_validator("eagle_config", mode="before")
    @classmethod
    def _read_null(cls, block: Any) -> Any:
        return {} if block is None else block

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
        slides = self.layer_types is not None and self.layer_types[:1] == [SLIDING]
        return self.sliding_window if slides else None

    @property
    def rope(self) -> dict[str, Any]:
        """Rotary settings as `transformers` names them; see `rope.read_rope`."""
        return read_rope(self.rope_parameters, self.rope_scaling, self.rope_theta)

    @property
    def takes_aux(self) -> bool:
        """Whether the features are several states, or the one behind the target's final norm."""
        return self.eagle_config.use_aux_hidden_state

    @property
    def num_aux(self) -> int:
        """States that make up the features."""
        if not self.takes_aux:
            return 1
        given = self.eagle_aux_hidden_state_layer_ids
        ids = given or self.eagle_config.eagle_aux_hidden_state_layer_ids
        return self.num_aux_hidden_states or len(ids or ()) or DEFAULT_NUM_AUX

    @property
    def norms_joined(self) -> bool:
        """Whether the joined states are normed in front of fc (`norm_before_fc`)."""
        nested = self.eagle_config.norm_before_fc
        return bool(self.norm_before_fc if nested is None else nested)

    @property
    def norms_each(self) -> bool:
        """Whether each state is normed in front of fc (`fc_norm`, once `use_aux_norm`)."""
        return bool(self.fc_norm) or self.use_aux_norm


def read_raw_config(folder: Path) -> dict[str, Any]:
    """A head's `config.json` as it stands.

    Raises:
        CheckpointError: it is missing or no JSON object.
    """
    path = folder / "config.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise CheckpointError(f"{path} is not the config of a head: {error}") from error
    if not isinstance(raw, dict):
        raise CheckpointError(f"{path} is not the config of a head: no JSON object")
    return raw


def parse_config(raw: Mapping[str, Any], path: Path) -> HeadConfig:
    """The fields of a config, those of speculators' nested layer config among them.

    Raises:
        CheckpointError: a field is missing or wrong, or asks for what is not computed here.
    """
    outer = {name: value for name, value in raw.items() if name != NESTED}
    nested = raw.get(NESTED) or {}
    if not isinstance(nested, dict):
        raise CheckpointError(f"{path}: {NESTED} is no JSON object")
    try:
        config = HeadConfig.model_validate({**nested, **outer})
    except ValidationError as error:
        found = "; ".join(_explain(details) for details in error.errors(include_url=False))
        raise CheckpointError(f"{path} is not the config of a head: {found}") from error
    unknown = _unknown_maths(config)
    if unknown:
        raise CheckpointError(f"{path}: {unknown}")
    read_rope(config.rope_parameters, config.rope_scaling, config.rope_theta)
    return config


def _explain(details: ErrorDetails) -> str:
    """One finding of pydantic, short."""
    where = ".".join(str(part) for part in details["loc"])
    if details["type"] == "missing":
        return f"{where} is missing"
    return f"{where} is {details['input']!r}: {details['msg']}"


def _unknown_maths(config: HeadConfig) -> str | None:
    """What the config asks for and is not computed here."""
    if config.num_hidden_layers != 1:
        return f"{config.num_hidden_layers} layers; a head has 1"
    unknown = set(config.layer_types or ()) - {"full_attention", SLIDING}
    if unknown:
        return f"layers of type {', '.join(sorted(unknown))} are unknown"
    if (config.layer_types or [])[:1] == [SLIDING] and config.sliding_window is None:
        return f"a layer of type {SLIDING} and no sliding_window"
    if config.hidden_act not in ACT2FN:
        return f"hidden_act {config.hidden_act!r} is unknown"
    if config.partial_rotary_factor != 1:
        return f"partial_rotary_factor {config.partial_rotary_factor}; only whole heads are rotated"
    if config.quantization_config:
        method = config.quantization_config.get("quant_method")
        return f"the weights are quantised ({method}); expected plain ones"
    return None
