"""Which tensors a head must, may and can't have, by kind and config."""

from pathlib import Path
from typing import Any

import pytest
import torch

from eaglebench.errors import CheckpointError
from eaglebench.model.target import Target
from tests.checkpoints import (
    HIDDEN,
    make_eagle1_tensors,
    make_head_tensors,
    make_model,
    publish_eagle1,
    publish_eagle3,
    write_head,
)
from tests.loaded_heads import load_head


def make_target() -> Target:
    """A target in float64."""
    torch.set_num_threads(1)
    return Target(make_model(dtype=torch.float64))


@pytest.mark.parametrize(
    ("extra", "fields", "message"),
    [
        ((), {"fc_norm": True}, r"missing: fc_norm\.0\.weight, fc_norm\.1\.weight"),
        (("fc_norm",), {}, r"without a place: fc_norm\.0\.weight"),
        ((), {"norm_before_fc": True}, r"missing: input_norm\.weight"),
        (("input_norm",), {}, r"without a place: input_norm\.weight"),
    ],
)
def test_flags_and_tensors_have_to_agree(
    tmp_path: Path, extra: tuple[str, ...], fields: dict[str, Any], message: str
) -> None:
    """A norm without its flag has no place, a flag without its norm misses one."""
    folder = publish_eagle3(tmp_path, "sglang", make_head_tensors(*extra), **fields)
    with pytest.raises(CheckpointError, match=message):
        load_head(folder, make_target())


def test_norms_of_early_heads_are_placed(tmp_path: Path) -> None:
    """`aux_norm_low`, `_mid` and `_high` are the three norms in front of fc."""
    tensors = make_head_tensors("fc_norm")
    for index, name in enumerate(("low", "mid", "high")):
        tensors[f"aux_norm_{name}.weight"] = tensors.pop(f"fc_norm.{index}.weight")
    head = load_head(publish_eagle3(tmp_path, "sglang", tensors, fc_norm=True), make_target())

    assert head.report.sources["fc_norm.2.weight"] == "aux_norm_high.weight"


def test_nested_flags_are_read(tmp_path: Path) -> None:
    """`norm_before_fc` in `eagle_config`, as ModelOpt writes it."""
    block = {"eagle_aux_hidden_state_layer_ids": [0, 2, 4], "norm_before_fc": True}
    tensors = make_head_tensors("input_norm")
    head = load_head(publish_eagle3(tmp_path, "vllm", tensors, eagle_config=block), make_target())

    assert "input_norm.weight" in head.report.sources


def test_what_is_not_needed_is_left_aside(tmp_path: Path) -> None:
    """Frequencies of old files and the verifier's copies are known and not used."""
    extra = {
        "midlayer.self_attn.rotary_emb.inv_freq": torch.ones(4),
        "verifier_norm.weight": torch.ones(HIDDEN),
    }
    head = load_head(write_head(tmp_path, tensors=make_head_tensors() | extra), make_target())

    assert not set(extra) & set(head.report.sources.values())


def test_some_of_three_biases_are_refused(tmp_path: Path) -> None:
    """The missing ones are named."""
    tensors = make_head_tensors("qkv_bias")
    del tensors["midlayer.self_attn.k_proj.bias"]
    with pytest.raises(CheckpointError, match=r"missing: layers\.0\.self_attn\.k_proj\.bias"):
        load_head(write_head(tmp_path, tensors=tensors), make_target())


def test_eagle1_borrows_what_it_lacks(tmp_path: Path) -> None:
    """Embeddings and lm_head are the target's, and the report says so."""
    head = load_head(publish_eagle1(tmp_path, "sglang"), make_target())

    assert head.report.sources["embed_tokens.weight"] == "the target's embeddings"
    assert head.report.sources["lm_head.weight"] == "the target's lm_head"


@pytest.mark.parametrize("name", ["norm.weight", "layers.0.input_layernorm.weight", "d2t"])
def test_eagle1_has_no_such_place(tmp_path: Path, name: str) -> None:
    """A final norm, an input norm or a reduced vocabulary is no EAGLE-1 head's."""
    tensors = make_eagle1_tensors() | {name: torch.ones(HIDDEN)}
    with pytest.raises(CheckpointError, match=f"without a place: {name}"):
        load_head(publish_eagle1(tmp_path, "sglang", tensors), make_target())


def test_layernorms_of_speculators_eagle1_are_refused(tmp_path: Path) -> None:
    """The variant with norms around fc is named tensor by tensor."""
    tensors = make_eagle1_tensors() | {"embedding_layernorm.weight": torch.ones(HIDDEN)}
    with pytest.raises(CheckpointError, match=r"without a place: embedding_layernorm\.weight"):
        load_head(publish_eagle1(tmp_path, "speculators", tensors), make_target())
