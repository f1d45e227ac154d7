"""Heads with any config: computed as a plain reading of the raw file says, or refused by name."""

import json
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor

from eaglebench.errors import UsageError
from eaglebench.model.heads.config import ALIASES, KNOWN, NESTED, EagleBlock
from eaglebench.model.heads.fields import HARMLESS, NEUTRAL
from eaglebench.model.target import Target
from tests.checkpoints import (
    make_eagle1_tensors,
    make_head_tensors,
    publish_eagle1,
    publish_eagle3,
)
from tests.head_runs import assert_as_written, make_target
from tests.loaded_heads import load_head
from tests.plain_reading import Undefined

BASES: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    # format, what the file has besides, what its config says
    "specforge": ("specforge", (), {}),
    "sglang": ("sglang", ("fc.bias",), {"bias": True}),
    "vllm": ("vllm", ("embed_tokens",), {"norm_before_residual": True}),
    "speculators": ("speculators", (), {}),
    "speculators 3.1": ("speculators", ("fc_norm",), {"fc_norm": True, "norm_output": True}),
    "norms": ("sglang", ("input_norm", "qk_norm"), {"norm_before_fc": True}),
    "borrowing": ("vllm", (), {"draft_vocab_size": None}),
    "eagle1 safeailab": ("safeailab", (), {}),
    "eagle1 sglang": ("sglang", ("fc.bias",), {}),
    "eagle1 speculators": ("speculators", (), {}),
}
ROPE = ("rope_parameters", "rope_scaling")
ROPE_NAMES = (
    *("rope_type", "type", "factor", "rope_theta", "partial_rotary_factor", "rotary_pct"),
    *("low_freq_factor", "high_freq_factor", "original_max_position_embeddings", "beta_fast"),
    *("beta_slow", "mscale", "mscale_all_dim", "attention_factor", "truncate", "mrope_section"),
    *("short_factor", "mystery"),
)
WHOLE_ROPES: tuple[dict[str, Any], ...] = (
    {"rope_type": "linear", "factor": 2.0},
    {"type": "linear", "factor": 4},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
    {"rope_type": "default", "partial_rotary_factor": 0.5},
    {"rope_type": "default", "rope_theta": 77.0},
    {"mrope_section": [2, 1, 1], "rope_type": "default"},
    {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    },
)
TYPICAL: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(ROPE, WHOLE_ROPES),
    "rope_type": ("default", "linear", "llama3", "yarn", "dynamic", "longrope", "mrope"),
    "type": ("default", "linear", "yarn"),
    "layer_types": (["sliding_attention"], ["full_attention"], ["sliding_attention"] * 3),
    "sliding_window": (3, 8, 100),
    "max_window_layers": (0, 28),
    "hidden_act": ("silu", "gelu", "relu", "gelu_pytorch_tanh", "tanh"),
    "model_type": ("llama", "qwen2", "qwen3", "mistral", "gemma3", "deepseek_v3"),
    "architectures": (["LlamaForCausalLMEagle3"], ["Eagle3LlamaForCausalLM"], ["DFlashDraftModel"]),
    "num_hidden_layers": (2, 40),
    "num_attention_heads": (2, 4, 8),
    "num_key_value_heads": (1, 2, 4),
    "head_dim": (4, 8, 16),
    "partial_rotary_factor": (0.25, 0.5, 0.75, 1.0),
    "rotary_dim": (2, 4, 8),
    "rms_norm_eps": (1e-6, 0.5),
    "rope_theta": (2.0, 500.0, 1e6),
    "max_position_embeddings": (5, 4096),
    "draft_vocab_size": (64, 256, 32),
    "vocab_size": (256, 250, 1000),
    "target_hidden_size": (32, 64),
    "num_aux_hidden_states": (1, 3, 4),
    "norm_type": ("rms_norm", "layer_norm"),
    "quantization_config": ({}, {"quant_method": "fp8"}),
    "speculators_model_type": ("eagle3", "eagle", "mtp", "peagle"),
    **dict.fromkeys(
        ("eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids"),
        ([1, 3, 5], [0, 2, 4], [2, 3, 4], [1, 3, 6], [3, 1, 5], []),
    ),
    **dict.fromkeys(("target_layer_ids", "aux_hidden_states_layers"), ([0, 2, 4], [1, 2, 3])),
}
ANY = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2, 3, 7, 64, 2**31, 10**30, -(10**30)]),
    st.sampled_from([0.0, 0.5, 1.0, -2.5, 1e-9, 1e300, float("nan"), float("inf")]),
    st.sampled_from(["", "silu", "true", "8", "full_attention", "nonsense"]),
    st.sampled_from([[], [1], ["x"], [1, 2, 3], {}, {"a": 1}, {"a": {"b": 2}}, [None]]),
)
OUTER = sorted(
    KNOWN | set(ALIASES) | set(NEUTRAL) | {"mystery", "swa_layers", "aux_layer_ids", "kv_lora_rank"}
)
INNER = sorted(set(EagleBlock.model_fields) | {"norm_before_fc", "return_hidden_post_norm", "x"})


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, list[tuple[str, str, Any]]]:
    """A base, and one to three fields of it that are said otherwise: block, name, value."""
    base = draw(st.sampled_from(sorted(BASES)))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        block = draw(st.sampled_from(["", "", "", "eagle_config", NESTED, *ROPE]))
        if block in ROPE:
            name = draw(st.sampled_from(ROPE_NAMES))
        elif block == "eagle_config":
            name = draw(st.sampled_from(INNER) | st.sampled_from(OUTER))
        else:
            name = draw(st.sampled_from(OUTER) | st.sampled_from(sorted(TYPICAL)))
        usual = st.sampled_from(TYPICAL[name]) if name in TYPICAL else st.booleans()
        found.append((block, name, draw(usual | usual | ANY)))
    return base, found


@cache
def the_target() -> Target:
    """One target for all examples; heads of a silent config need one of eight layers."""
    return make_target(num_hidden_layers=8)


def publish(base: str, folder: Path) -> None:
    """A head as its project writes it."""
    form, extra, fields = BASES[base]
    if base.startswith("eagle1"):
        publish_eagle1(folder, form, make_eagle1_tensors(*extra), **fields)
        return
    tensors: dict[str, Tensor] = make_head_tensors(*extra)
    if base == "borrowing":
        for name in ("lm_head.weight", "d2t", "t2d"):
            del tensors[name]
    publish_eagle3(folder, form, tensors, **fields)


def change(folder: Path, changed: list[tuple[str, str, Any]]) -> None:
    """Say some fields otherwise, in the block named; rotary blocks lie where the layer is."""
    config = json.loads((folder / "config.json").read_text())
    for block, name, value in changed:
        place = config
        if block in ROPE and isinstance(config.get(NESTED), dict):
            place = config[NESTED]
        if block and not (block == NESTED and NESTED not in config):
            if not isinstance(place.get(block), dict):
                place[block] = {}
            place = place[block]
        place[name] = value
    (folder / "config.json").write_text(json.dumps(config))


def verdict(base: str, changed: list[tuple[str, str, Any]]) -> str:
    """`loads` as the plain reading says, or `refused` by the name of something that was changed."""
    target = the_target()
    with TemporaryDirectory() as name:
        folder = Path(name)
        publish(base, folder)
        change(folder, changed)
        try:
            head = load_head(folder, target)
        except UsageError as error:
            text = f"{error.message} {error.hint}"
            names = {part for block, name, _ in changed for part in (name, block) if part}
            names |= {ALIASES[part] for part in names if part in ALIASES}
            assert any(part in text for part in names), f"{changed} refused without a name: {text}"
            return "refused"
        is_scaled = any(block in ROPE or name in ROPE for block, name, _ in changed)
        try:
            assert_as_written(head, folder, target, 1e-5 if is_scaled else 1e-9)
        except Undefined as missing:
            raise AssertionError(f"{changed} loads, and {missing} has no reading") from missing
        return "loads"


COMMON: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.explicit, Phase.generate, Phase.shrink),
}


@settings(max_examples=400, derandomize=True, **COMMON)
@given(changes())
def test_any_config_is_computed_or_refused_by_name(found: tuple[str, list[Any]]) -> None:
    """Any field of any format, with any value; never a head that differs, never a traceback."""
    assert verdict(*found) in {"loads", "refused"}


@pytest.mark.slow
@settings(max_examples=3000, **COMMON)
@given(changes())
def test_very_many_configs(found: tuple[str, list[Any]]) -> None:
    """The same, three thousand other ones every time."""
    assert verdict(*found) in {"loads", "refused"}


@pytest.mark.parametrize("base", BASES)
def test_what_is_changed_loads_before(base: str) -> None:
    """Otherwise every change would be refused for another reason."""
    assert verdict(base, [("", "use_cache", True)]) == "loads"


def test_every_field_alone() -> None:
    """One field after the other, in its block, typical values and others: many load, more don't."""
    counts: Counter[str] = Counter()
    for block, names in (("", OUTER), ("eagle_config", INNER)):
        for name in names:
            for value in (*TYPICAL.get(name, ()), True, False, 0.5):
                counts[verdict("vllm", [(block, name, value)])] += 1

    assert counts["loads"] > 100
    assert counts["refused"] > 200


WINDOWS: tuple[dict[str, Any], ...] = (
    {"use_sliding_window": True, "sliding_window": 3},
    {"use_sliding_window": False, "sliding_window": 3},
    {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0},
    {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 4},
    {"layer_types": ["sliding_attention"], "sliding_window": 3},
    {"layer_types": ["sliding_attention"], "sliding_window": 3, "use_sliding_window": False},
    {"layer_types": ["full_attention"], "sliding_window": 3, "use_sliding_window": False},
    {"model_type": "mistral", "sliding_window": 3},
)


@pytest.mark.parametrize("base", [name for name in BASES if name != "speculators 3.1"])
def test_windows_and_angles_in_every_format(base: str) -> None:
    """The fields that mean something together, at the top and in the nested config."""
    blocks = ["", NESTED] if "speculators" in base else [""]
    for block in blocks:
        for fields in WINDOWS:
            verdict(base, [(block, name, value) for name, value in fields.items()])
        for settings_ in WHOLE_ROPES:
            verdict(base, [(block, "rope_scaling", settings_), (block, "rotary_pct", 0.5)])


def test_what_is_called_harmless_changes_nothing() -> None:
    """Whatever it says: none of it is a field of the layer's maths."""
    said: list[tuple[str, str, Any]] = [("", name, {"any": 1}) for name in sorted(HARMLESS)]

    assert len(said) > 80
    assert verdict("speculators", said) == "loads"


def test_nothing_is_both_read_and_passed_over() -> None:
    """The three tables share no name."""
    tables = [KNOWN, HARMLESS, set(NEUTRAL), set(ALIASES)]

    assert sum(len(table) for table in tables) == len(set().union(*tables))
