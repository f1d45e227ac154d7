"""The head that is to be made: its config, its vocabulary, and the weights it begins with."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from eaglebench.errors import CheckpointError, UsageError
from eaglebench.model.checkpoint import canonical_name
from eaglebench.model.heads.aux_layers import (
    count_as_output,
    default_aux_layer_ids,
)
from eaglebench.model.heads.config import HeadConfig, parse_config
from eaglebench.model.heads.fit import facts_of, fit_to, id_table
from eaglebench.model.heads.places import EMBEDDING
from eaglebench.model.heads.published import PublishedHead, read_published
from eaglebench.model.target import Target
from eaglebench.model.vocabulary import written_tables
from eaglebench.training.recipe import TrainingRecipe
from eaglebench.training.training_time_test import TrainableHead

_BLOCKS = {
    "": ("fc", "norm", "lm_head"),
    "midlayer.": ("input_layernorm", "hidden_norm", "post_attention_layernorm"),
    "midlayer.self_attn.": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "midlayer.mlp.": ("gate_proj", "up_proj", "down_proj"),
}
_PUBLISHED = {
    f"{n}.weight": f"{block}{n}.weight" for block, names in _BLOCKS.items() for n in names
}
"""Parameters of a trainable head: what they are called in a file."""


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A head before its first update.

    Attributes:
        fields: its `config.json`.
        aux_layer_ids: as `Target.forward` takes them.
        target_ids: [draft_vocab] int64, target id of every token it can propose.
        tensors: first weights by parameter; None where they are drawn.
    """

    fields: dict[str, Any]
    aux_layer_ids: tuple[int, ...]
    target_ids: Tensor
    tensors: Mapping[str, Tensor] | None = None

    @property
    def config(self) -> HeadConfig:
        """The fields as a loader reads them."""
        return parse_config(self.fields, Path("config.json"))

    def build(self, seed: int, device: torch.device) -> TrainableHead:
        """The head, float32."""
        torch.manual_seed(seed)
        head = TrainableHead(self.config, len(self.aux_layer_ids), len(self.target_ids))
        if self.tensors is not None:
            head.load_state_dict(self.tensors)
        return head.to(device)


def check_shape(target: Target, recipe: TrainingRecipe) -> None:
    """Refuse what can't be a head of this target, before anything is computed.

    Raises:
        CheckpointError: the target is too shallow for the default layers.
        UsageError: it does not have the layers or the tokens that were asked for.
    """
    for index in aux_layers(target, recipe):
        if not 1 <= index <= target.num_layers:
            raise UsageError(
                f"auxiliary layer {index}: expected 1 to {target.num_layers}, the state that "
                "enters that layer; the last one is the state after all layers"
            )
    least = len(target.stop_token_ids) + 1  # an end and something to say before it
    if recipe.draft_vocab_size < least:
        raise UsageError(
            f"a draft vocabulary of {recipe.draft_vocab_size}; expected at least {least}"
        )


def aux_layers(target: Target, recipe: TrainingRecipe) -> tuple[int, ...]:
    """The states that feed the head; a CheckpointError if a target is too shallow for the default."""
    try:
        return recipe.aux_layer_ids or default_aux_layer_ids(target.num_layers)
    except CheckpointError as error:
        raise CheckpointError(error.message, hint="name them with --aux-layer-ids") from error


def new_blueprint(target: Target, recipe: TrainingRecipe, target_ids: Tensor) -> Blueprint:
    """A new head in the shape of one of the target's layers; see `aux_layers` for refusals."""
    config = target.config
    aux = aux_layers(target, recipe)
    rope = _flat_rope(config)
    fields = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": target.hidden_size,
        "intermediate_size": recipe.intermediate_size or int(config.intermediate_size),
        "num_attention_heads": int(config.num_attention_heads),
        "num_key_value_heads": target.num_kv_heads,
        "head_dim": target.head_dim,
        "num_hidden_layers": 1,
        "hidden_act": "silu",
        "rms_norm_eps": float(config.rms_norm_eps),
        **rope,
        "max_position_embeddings": target.context_length,
        "vocab_size": target.vocab_size,
        "draft_vocab_size": len(target_ids),
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        # vLLM reads the top level as states, SGLang the block as outputs of layers.
        "eagle_aux_hidden_state_layer_ids": list(aux),
        "eagle_config": {
            "eagle_aux_hidden_state_layer_ids": list(count_as_output(aux)),
            "use_aux_hidden_state": True,
        },
    }
    return Blueprint(fields, tuple(aux), target_ids)


def blueprint_of(folder: Path, target: Target) -> Blueprint:
    """A head to go on from: plain EAGLE-3, whatever format it is written in.

    Raises:
        CheckpointError: it does not fit the target.
        UsageError: it is another kind of head than is trained here.
    """
    head = read_published(folder)
    aux = head.aux_layers(target.num_layers)
    assert aux.ids is not None
    facts = facts_of(target)
    table, _ = id_table(fit_to(head, aux, facts), facts)
    tensors = _by_parameter(head)
    return Blueprint(dict(head.raw), aux.ids, table, tensors)


def published_tensors(
    head: TrainableHead, target_ids: Tensor, vocab_size: int
) -> dict[str, Tensor]:
    """Weights in bfloat16 by their published names, and the tables of the vocabulary."""
    tensors = {
        _PUBLISHED[name]: parameter.detach().to("cpu", torch.bfloat16).contiguous()
        for name, parameter in head.named_parameters()
    }
    return {**tensors, **written_tables(target_ids, vocab_size)}


def _by_parameter(head: PublishedHead) -> dict[str, Tensor]:
    config = head.config
    is_plain = not (
        not head.is_eagle3
        or head.feeds_normed
        or config.norm_before_residual
        or config.norms_joined
        or config.norms_each
        or not config.takes_aux
        or config.window
        or config.rotated_width != config.head_width
        or config.hidden_act != "silu"
    )
    found = head.placed.tensors
    places = {name: canonical_name(source) for name, source in _PUBLISHED.items()}
    if not is_plain or set(found) - {"d2t", "t2d", EMBEDDING} != set(places.values()):
        raise UsageError(
            f"{head.path} is not a plain EAGLE-3 head without biases, the one kind that is "
            "trained here",
            hint="leave --start-from out",
        )
    return {name: found[place].float() for name, place in places.items()}


def _flat_rope(config: Any) -> dict[str, Any]:
    """The target's rotary embedding, that of its full-attention layers where there are several."""
    rope = dict(getattr(config, "rope_parameters", None) or {})
    rope = dict(rope.get("full_attention") or rope)
    theta = rope.pop("rope_theta", None) or 10000.0
    kind = rope.get("rope_type", "default")
    fields: dict[str, Any] = {"rope_theta": float(theta)}
    if kind != "default":
        fields["rope_scaling"] = {**rope, "rope_type": kind, "type": kind}
    return fields
