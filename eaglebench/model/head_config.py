"""`config.json` of an EAGLE-3 head, in the forms that are published."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from eaglebench.errors import CheckpointError


class EagleBlock(BaseModel):
    """The nested `eagle_config`."""

    model_config = ConfigDict(extra="ignore")

    eagle_aux_hidden_state_layer_ids: list[int] | None = None
    use_aux_hidden_state: bool = True
    norm_before_fc: bool = False


class HeadConfig(BaseModel):
    """What the head's shape and rotary embedding are read from; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    num_hidden_layers: int = 1
    hidden_act: str = "silu"
    rms_norm_eps: float = 1e-6
    rope_theta: float | None = None
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    max_position_embeddings: int | None = None
    vocab_size: int
    draft_vocab_size: int | None = None
    target_hidden_size: int | None = None
    tie_word_embeddings: bool = False
    norm_before_residual: bool = False
    norm_before_fc: bool = False
    eagle_aux_hidden_state_layer_ids: list[int] | None = None
    eagle_config: EagleBlock = Field(default_factory=EagleBlock)

    @property
    def num_kv_heads(self) -> int:
        """KV heads of the one layer."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def head_width(self) -> int:
        """Width of one attention head."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def aux_layer_ids(self) -> tuple[int, ...] | None:
        """Layers whose input hidden state feeds the head; None when the config is silent."""
        ids = self.eagle_aux_hidden_state_layer_ids
        if ids is None:
            ids = self.eagle_config.eagle_aux_hidden_state_layer_ids
        return None if ids is None else tuple(ids)


def read_head_config(folder: Path) -> HeadConfig:
    """Read and check a head's `config.json`.

    Raises:
        CheckpointError: it is missing, no JSON, or lacks a field; or it asks for something this
            engine does not compute.
    """
    path = folder / "config.json"
    try:
        config = HeadConfig.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CheckpointError(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, ValidationError) as error:
        raise CheckpointError(f"{path} is not the config of a head: {error}") from error
    if config.num_hidden_layers != 1:
        raise CheckpointError(f"{path}: {config.num_hidden_layers} layers; a head has 1")
    if config.norm_before_fc or config.eagle_config.norm_before_fc:
        raise CheckpointError(f"{path}: norm_before_fc is not supported")
    if config.norm_before_residual:
        raise CheckpointError(f"{path}: norm_before_residual is not supported")
    return config


def default_aux_layer_ids(num_layers: int) -> tuple[int, ...]:
    """The layers every published engine takes when the config is silent: (2, n // 2, n - 3).

    Raises:
        CheckpointError: the target is too shallow for three different layers.
    """
    ids = (2, num_layers // 2, num_layers - 3)
    if list(ids) != sorted(set(ids)) or ids[0] < 0:
        raise CheckpointError(
            f"the default auxiliary layers of a target with {num_layers} layers are {ids}, "
            "which are not three different layers in order",
            hint="set eagle_config.eagle_aux_hidden_state_layer_ids in the head's config.json",
        )
    return ids


def check_aux_layer_ids(ids: tuple[int, ...], num_layers: int) -> None:
    """Refuse layers the target does not have.

    Raises:
        CheckpointError: an id is out of range.
    """
    for index in ids:
        if not 0 <= index < num_layers:
            raise CheckpointError(
                f"auxiliary layer {index} asks for the input of a layer the target does not have; "
                f"its layers are 0 .. {num_layers - 1}"
            )
