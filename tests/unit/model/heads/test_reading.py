"""What a config.json says is computed: loaded heads against a plain reading of the raw file."""

from pathlib import Path
from typing import Any

import pytest

from eaglebench.errors import CheckpointError
from tests.checkpoints import (
    AUX_LAYER_IDS,
    make_eagle1_tensors,
    make_head_tensors,
    publish_eagle1,
    publish_eagle3,
)
from tests.head_runs import assert_as_written, make_target, read_against
from tests.loaded_heads import load_head

EXACT, ROUNDED = 1e-10, 1e-5
"""Scaled angles are rounded to float32 in another order, so that positions turn by 1e-7 more."""
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
SPELLINGS: dict[str, dict[str, Any]] = {
    "share inside": {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
    "share inside the old spelling": {"rope_scaling": {"partial_rotary_factor": 0.5}},
    "share outside": {"partial_rotary_factor": 0.5},
    "share in both": {
        "partial_rotary_factor": 0.5,
        "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5},
    },
    "share as GPT-NeoX has it": {"rotary_pct": 0.25},
    "share as StableLM had it": {"rope_pct": 0.5},
    "share of a whole": {"partial_rotary_factor": 1.0},
    "dimensions": {"rotary_dim": 4},
    "share of scaled angles": {"rope_parameters": {**LLAMA3, "partial_rotary_factor": 0.5}},
    "share of stretched angles": {"rope_scaling": YARN, "partial_rotary_factor": 0.75},
    "stretched otherwise": {"rope_scaling": {**YARN, "beta_fast": 16, "truncate": False}},
    "stretched and loud": {"rope_scaling": {**YARN, "attention_factor": 1.5}},
    "stretched as DeepSeek": {"rope_scaling": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.0}},
    "two spellings that agree": {"rope_parameters": YARN, "rope_scaling": YARN},
    "a base inside": {"rope_theta": None, "rope_parameters": {"rope_theta": 500.0}},
    "flat window": {"use_sliding_window": True, "sliding_window": 3},
    "flat window of all layers": {
        "use_sliding_window": True,
        "sliding_window": 3,
        "max_window_layers": 0,
    },
    "no window": {"use_sliding_window": False, "sliding_window": 3, "max_window_layers": 36},
    "window by type": {"layer_types": ["sliding_attention"], "sliding_window": 3},
    "window by types of the target": {
        "layer_types": ["sliding_attention"] * 6,
        "sliding_window": 3,
    },
    "no window by type": {"layer_types": ["full_attention"], "sliding_window": 3},
    "window of Mistral": {"model_type": "mistral", "sliding_window": 3},
    "no window of Qwen": {"model_type": "qwen2", "sliding_window": 3},
    "another activation": {"hidden_act": "gelu_pytorch_tanh"},
    "another epsilon": {"rms_norm_eps": 0.1},
    "normed output": {"norm_output": True},
    "no normed output": {"norm_output": False},
    "a residual that is normed": {"norm_before_residual": True},
    "a copied number of layers": {"num_hidden_layers": 40},
    "what says nothing": {"logit_scale": 1.0, "scale_emb": 1, "is_causal": True, "clip_qkv": None},
}
MEANT = {name for name in SPELLINGS if name.split()[0] not in {"no", "what"}} - {
    "share of a whole",
    "a copied number of layers",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("form", ["sglang", "vllm", "speculators"])
def test_every_spelling_is_computed(tmp_path: Path, form: str, spelling: str) -> None:
    """States, logits and limits of the raw file, within 1e-10 (1e-5 where angles are scaled)."""
    fields = SPELLINGS[spelling]
    target = make_target()
    folder = publish_eagle3(tmp_path, form, **fields)

    head = load_head(folder, target)

    is_scaled = any(
        "factor" in (fields.get(name) or {}) for name in ("rope_scaling", "rope_parameters")
    )
    assert_as_written(head, folder, target, ROUNDED if is_scaled else EXACT)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_matter(tmp_path: Path, spelling: str) -> None:
    """The plain reading itself changes with every field that asks for something."""
    target = make_target()
    told = read_against(
        publish_eagle3(tmp_path / "a", "sglang", **SPELLINGS[spelling]), target
    ).head
    usual = read_against(publish_eagle3(tmp_path / "b", "sglang"), target).head
    names = [name for name in vars(told) if name not in {"weights", "frequencies"}]
    is_other = any(getattr(told, name) != getattr(usual, name) for name in names)

    assert (is_other or told.frequencies is not None) == (spelling in MEANT)


@pytest.mark.parametrize(
    "fields",
    [
        {"partial_rotary_factor": 0.5},
        {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
        {"use_sliding_window": True, "sliding_window": 3},
        {"hidden_act": "gelu"},
        {"rope_theta": 300.0},
    ],
)
@pytest.mark.parametrize("form", ["safeailab", "sglang", "speculators"])
def test_eagle1_is_read_as_well(tmp_path: Path, form: str, fields: dict[str, Any]) -> None:
    """Its layer is the same."""
    target = make_target()
    folder = publish_eagle1(tmp_path, form, make_eagle1_tensors("fc.bias"), **fields)

    assert_as_written(load_head(folder, target), folder, target, EXACT)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mystery_multiplier": 2.0}, "mystery_multiplier 2.0 is not known here"),
        ({"sliding_windows": 8}, "sliding_windows 8 .*did you mean sliding_window"),
        ({"logit_scale": 0.5}, "logit_scale is 0.5: it scales or caps the logits"),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping is 30.0"),
        ({"scale_emb": 12}, "scale_emb is 12: it scales the embeddings"),
        ({"is_causal": False}, "is_causal is False"),
        ({"is_causal": "yes"}, "is_causal is 'yes'"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantization_config .* weights"),
        (
            {"eagle_config": {"use_last_layernorm": False}},
            "eagle_config.use_last_layernorm is False",
        ),
        ({"eagle_config": {"surprise": 1}}, "eagle_config.surprise 1 is not known"),
        ({"eagle_config": 3}, "eagle_config is 3"),
        ({"rope_parameters": {"rope_theta": 9.0, "twist": 2}}, "twist"),
        ({"rope_scaling": {**YARN, "mscale": 1.0}}, "mscale and mscale_all_dim"),
        ({"rope_scaling": {**YARN, "mrope_section": [2, 1, 1]}}, "mrope_section beside .*yarn"),
        (
            {"rope_scaling": YARN, "rope_parameters": {**YARN, "factor": 2.0}},
            "factor is 2.0 in rope_parameters and 4.0 in rope_scaling",
        ),
        (
            {"partial_rotary_factor": 0.5, "rope_parameters": {"partial_rotary_factor": 0.25}},
            "don't agree: rope_parameters.partial_rotary_factor 2, partial_rotary_factor 4",
        ),
        ({"partial_rotary_factor": 0.5, "rotary_pct": 0.25}, "rotary_pct 0.25"),
        ({"partial_rotary_factor": 1.5}, "partial_rotary_factor is 1.5; expected"),
        ({"sliding_window": 8}, "neither layer_types nor use_sliding_window"),
        ({"use_sliding_window": True}, "use_sliding_window and no sliding_window"),
        (
            {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 28},
            "max_window_layers 28",
        ),
        (
            {"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 8},
            "2 layers of two types",
        ),
        (
            {
                "layer_types": ["full_attention"],
                "use_sliding_window": True,
                "sliding_window": 8,
            },
            "layer_types and use_sliding_window .true. don't agree",
        ),
        ({"attention_bias": True}, "attention_bias is true, yet the file has none"),
        ({"mlp_bias": True}, "mlp_bias is true, yet"),
        ({"use_qk_norm": True}, "use_qk_norm is true, yet"),
        ({"norm_before_fc": True}, r"missing: input_norm.weight.* norm_before_fc True"),
        ({"model_type": "gemma3"}, "model_type is 'gemma3'"),
        ({"hidden_act": "quick_gelu"}, "hidden_act 'quick_gelu'; known: silu"),
        ({"num_attention_heads": 3}, "num_attention_heads 3"),
        ({"hidden_size": True}, "hidden_size is True"),
        ({"rms_norm_eps": -1.0}, "rms_norm_eps is -1.0"),
        ({"max_position_embeddings": -5}, "max_position_embeddings is -5"),
    ],
)
@pytest.mark.parametrize("form", ["vllm", "speculators"])
def test_what_is_not_computed_is_refused_by_name(
    tmp_path: Path, form: str, fields: dict[str, Any], message: str
) -> None:
    """Nothing is passed over: the field, what it would change, what to try."""
    with pytest.raises(CheckpointError, match=message):
        load_head(publish_eagle3(tmp_path, form, **fields), make_target())


@pytest.mark.parametrize(
    ("extra", "flag"), [("qkv_bias", "attention_bias"), ("qk_norm", "qk_norm")]
)
def test_a_flag_that_the_file_contradicts_is_refused(tmp_path: Path, extra: str, flag: str) -> None:
    """An engine would drop those tensors without a word."""
    fields: dict[str, Any] = {flag: False}
    folder = publish_eagle3(tmp_path, "sglang", make_head_tensors(extra), **fields)
    with pytest.raises(CheckpointError, match=rf"{flag} is false, yet the file has"):
        load_head(folder, make_target())


def test_two_levels_of_a_speculators_file_must_agree(tmp_path: Path) -> None:
    """A field of the layer that the outer level says otherwise is in doubt."""
    from json import dumps, loads

    folder = publish_eagle3(tmp_path, "speculators")
    config = loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(dumps({**config, "rms_norm_eps": 0.5}))
    with pytest.raises(CheckpointError, match=r"rms_norm_eps is 0.5 at the top level and 1e-05 in"):
        load_head(folder, make_target())


@pytest.mark.parametrize("form", ["sglang", "vllm", "speculators"])
def test_another_number_of_layers_than_fc_takes_names_their_field(
    tmp_path: Path, form: str
) -> None:
    """The matrix is what it is; the ids are what was written wrongly."""
    folder = publish_eagle3(tmp_path, form, aux_layer_ids=(1, 3))
    with pytest.raises(CheckpointError, match=r"fc.weight .*eagle_aux_hidden_state_layer_ids"):
        load_head(folder, make_target())


def test_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    """As editors of one system write it."""
    target = make_target()
    folder = publish_eagle3(tmp_path, "sglang")
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text, encoding="utf-8-sig")

    assert load_head(folder, target).aux_layer_ids == AUX_LAYER_IDS
    assert_as_written(load_head(folder, target), folder, target, EXACT)


def test_a_copied_number_of_layers_is_mentioned(tmp_path: Path) -> None:
    """The file decides: it has one."""
    head = load_head(publish_eagle3(tmp_path, "sglang", num_hidden_layers=40), make_target())

    assert "num_hidden_layers is 40, yet the file has one" in head.report.warnings[0]
