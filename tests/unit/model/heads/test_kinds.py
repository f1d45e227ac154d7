"""Draft models of other kinds are called what they are, before anything is counted."""

from pathlib import Path
from typing import Any

import pytest
import torch

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.format import count_layers
from tests.checkpoints import HIDDEN, make_head_tensors, publish_eagle3
from tests.head_runs import make_target
from tests.loaded_heads import load_head

KINDS: list[tuple[dict[str, Any], tuple[str, ...], str]] = [
    # what the config says, what the file has besides, what it is
    ({"architectures": ["PEagleDraftModel"], "num_hidden_layers": 4}, (), "P-EAGLE"),
    ({"parallel_drafting": True}, (), "P-EAGLE"),
    ({}, ("mask_hidden",), "P-EAGLE"),
    ({"architectures": ["DFlashDraftModel"], "num_hidden_layers": 5}, (), "DFlash"),
    ({"dflash_config": {"target_layer_ids": [1, 9]}, "block_size": 16}, (), "DFlash"),
    ({"architectures": ["Qwen3DSparkModel"]}, (), "DSpark"),
    ({"architectures": ["Eagle3DeepseekV2ForCausalLM"]}, (), "MLA"),
    ({"kv_lora_rank": 512, "q_lora_rank": 1536}, (), "MLA"),
    ({}, ("midlayer.self_attn.kv_a_proj_with_mqa.weight",), "MLA"),
    ({"model_type": "deepseek_mtp"}, (), "MTP|MLA"),
    ({}, ("eh_proj.weight",), "MTP"),
    ({"medusa_num_heads": 4}, (), "Medusa"),
    ({"model_type": "mlp_speculator"}, (), "MLP speculator"),
    ({"num_experts": 64}, (), "mixture of experts"),
    ({}, ("parallel_draft_heads.0.lm_head.weight",), "ModelOpt"),
]


@pytest.mark.parametrize(("fields", "extra", "what"), KINDS)
@pytest.mark.parametrize("form", ["sglang", "speculators"])
def test_other_kinds_are_named(
    tmp_path: Path, form: str, fields: dict[str, Any], extra: tuple[str, ...], what: str
) -> None:
    """By what they say they are, not by the first number that does not fit."""
    tensors = make_head_tensors() | {name: torch.ones(HIDDEN) for name in extra}
    with pytest.raises(CheckpointError, match=f"the draft model is .*({what}).* is no EAGLE head"):
        load_head(publish_eagle3(tmp_path, form, tensors, **fields), make_target())


def test_a_speculator_of_another_type_is_named(tmp_path: Path) -> None:
    """By the word that the format has for it."""
    folder = publish_eagle3(tmp_path, "vllm", speculators_model_type="peagle")
    with pytest.raises(CheckpointError, match=r"a P-EAGLE head, .*speculators_model_type 'peagle'"):
        load_head(folder, make_target())


def test_layers_are_counted_in_the_file(tmp_path: Path) -> None:
    """Two layers are two, whatever the config says."""
    tensors = make_head_tensors() | {"layers.1.mlp.up_proj.weight": torch.ones(HIDDEN)}

    assert count_layers(make_head_tensors()) == 1
    with pytest.raises(CheckpointError, match="the file has 2 decoder layers"):
        load_head(publish_eagle3(tmp_path, "specforge", tensors), make_target())
