"""Every causal LM that the installed `transformers` builds small: its own logits, or a refusal."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    Gemma3Config,
    Mistral3Config,
)

from eaglebench.errors import UsageError
from eaglebench.model.target import Target
from eaglebench.model.target_config import read_sinks
from tests.families import CONTEXT, VOCAB, families, is_composite, make_config, make_family
from tests.paged_logits import paged_logits

LENGTHS = (29, 23)
"""Tokens of two prompts, both longer than three windows."""
COMPUTED = (
    "cohere",  # logits times a factor
    "gemma2",  # logits and scores under a soft cap
    "gemma3_text",  # rotary tables by the type of the layer
    "gpt2",  # learned positions, other names for everything
    "gpt_neox",
    "gpt_oss",  # sinks and experts
    "granite",  # four multipliers, logits divided
    "nemotron",  # keyword arguments end in its layers
    "opt",
    "phi3",
    "qwen3_moe",
    "smollm3",  # layers without rotary embedding
    "stablelm",
)
REFUSED = {
    "bamba": "linear_attention",
    "bart": "decoder",
    "bloom": "max_position_embeddings",
    "deepseek_v3": "latent attention",
    "falcon": "attention interface",
    "gemma4_text": "several shapes",
    "jamba": "linear_attention",
    "lfm2_moe": "conv",
    "llama4_text": "chunked_attention",
    "mamba": "max_position_embeddings",
    "mpt": "max_position_embeddings",
    "qwen3_next": "linear_attention",
    "zaya": "hybrid",
}
CANT_BE_BUILT_SMALL = frozenset(
    {"dbrx", "zamba", "zamba2", "qwen4_exp_text", "cohere_compass_text"}
)
"""Families whose own configs contradict each other at these sizes."""
LEAST_COMPUTED = 50


def own_logits(kind: str, prompts: Sequence[Tensor], **changes: Any) -> list[Tensor]:
    """[num_tokens, vocab] of each prompt, by the untouched model's plain attention."""
    model = make_family(kind, **changes)
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        return [model(input_ids=ids[None], use_cache=False).logits[0].clone() for ids in prompts]


def check(kind: str, backend: str = "loop", **changes: Any) -> None:
    """Assert that the paged logits of a family are its own, within 1e-4 of their deviation.

    Raises:
        UsageError: the family is refused.
    """
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    prompts = [torch.randint(3, VOCAB, (count,), generator=generator) for count in LENGTHS]
    target = Target.proved(make_family(kind, **changes), attention_backend=backend)
    expected = own_logits(kind, prompts, **changes)
    for pieces in ([max(LENGTHS)], [11, 1, 1, 16]):
        for mine, theirs in zip(paged_logits(target, prompts, pieces), expected, strict=True):
            assert mine.shape == theirs.shape == (len(mine), target.vocab_size)
            assert float(theirs.std()) > 0
            assert float((mine - theirs).abs().max() / theirs.std()) < 1e-4, (kind, pieces)


@pytest.mark.parametrize("kind", sorted(set(COMPUTED) & set(families())))
def test_a_family_has_its_own_logits(kind: str) -> None:
    """Logits, not choices: scales and caps behind the head change no greedy token."""
    check(kind)


@pytest.mark.parametrize("kind", ["mixtral", "gpt_oss", "qwen3_moe", "gemma2", "opt"])
def test_a_family_is_proved_in_float64(kind: str) -> None:
    """The dtype of proofs; grouped products of experts are not there in it."""
    target = Target.proved(make_family(kind).double())

    assert target.dtype == torch.float64


@pytest.mark.parametrize("kind", ["gemma3_text", "mistral"])
def test_the_language_model_of_several_inputs_is_a_target(kind: str) -> None:
    """Its head is that of the whole, its decoder a part of a part."""
    sight = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 28,
        "patch_size": 14,
    }
    text = make_config(kind).to_dict()
    torch.manual_seed(0)
    if kind == "mistral":
        pixtral = {"model_type": "pixtral", **sight}
        config = Mistral3Config(text_config=text, vision_config=pixtral)
        model = AutoModelForImageTextToText.from_config(config)
    else:
        config = Gemma3Config(text_config=text, vision_config=sight, mm_tokens_per_image=4)
        model = AutoModelForCausalLM.from_config(config)

    target = Target.proved(model)

    assert target.vocab_size == VOCAB
    assert target.num_layers == 4


@pytest.mark.parametrize("kind", sorted(set(REFUSED) & set(families())))
def test_a_family_that_cant_be_computed_is_refused_by_name(kind: str) -> None:
    """With what is missing, and no traceback from inside it."""
    with pytest.raises(UsageError, match=kind) as caught:
        check(kind)
    assert REFUSED[kind] in caught.value.message


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loop", "padded"])
def test_every_family_is_computed_or_refused(backend: str) -> None:
    """The whole mapping of causal LMs; nothing ends in anything else."""
    computed, unbuilt = [], []
    for kind in families():
        if is_composite(kind):  # its text part stands in the mapping under its own name
            continue
        if kind in CANT_BE_BUILT_SMALL:
            unbuilt.append(kind)
            continue
        refusal = None
        try:
            check(kind, backend)
        except UsageError as error:
            refusal = error.message
        if refusal is None:
            computed.append(kind)
        else:
            assert kind in refusal
    assert set(COMPUTED) & set(families()) <= set(computed)
    assert not set(REFUSED) & set(computed)
    assert len(computed) >= LEAST_COMPUTED
    assert len(unbuilt) <= len(CANT_BE_BUILT_SMALL)


def test_a_subset_of_columns_is_what_the_whole_head_says() -> None:
    """Scaled by the family as well, column by column or picked from all."""
    for kind in ("granite", "cohere", "gemma2", "opt"):
        target = Target.proved(make_family(kind))
        hidden = torch.randn((5, target.hidden_size), generator=torch.Generator().manual_seed(2))
        columns = torch.tensor([100, 3, 64])
        whole, some = target.lm_head_logits(hidden), target.lm_head_logits(hidden, columns)
        assert torch.allclose(some, whole.index_select(1, columns), atol=1e-5)


# --- positions ------------------------------------------------------------------------------------

STATIC = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    },
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
}
CHANGING = {
    "longrope": {
        "rope_type": "longrope",
        "short_factor": [1.0, 1.5, 2.0, 2.5],
        "long_factor": [2.0, 4.0, 6.0, 8.0],
        "original_max_position_embeddings": 48,
    },
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
}


@pytest.mark.parametrize("name", STATIC)
def test_static_rotary_kinds_are_the_models_own(name: str) -> None:
    """One table for every length, up to the end of the context."""
    check("llama", rope_parameters={"rope_theta": 10000.0, **STATIC[name]})


@pytest.mark.parametrize(
    ("kind", "name", "more"),
    [
        ("llama", "longrope", {}),
        ("llama", "dynamic", {}),
        ("phi3", "longrope", {"original_max_position_embeddings": 48}),
    ],
)
def test_rotary_kinds_that_change_are_computed_as_far_as_they_dont(
    kind: str, name: str, more: dict[str, Any]
) -> None:
    """The context ends where the table would change; up to there rows can't disturb each other."""
    changes = {"rope_parameters": {"rope_theta": 10000.0, **CHANGING[name]}, **more}
    check(kind, **changes)

    target = Target.proved(make_family(kind, **changes))

    assert target.context_length == {"longrope": 48, "dynamic": CONTEXT}[name]
    assert name in " ".join(target.warnings)


def test_rows_past_the_change_would_disturb_each_other() -> None:
    """Why it ends there: a short row beside a long one has the long one's table."""
    rope = {"rope_theta": 10000.0, **CHANGING["longrope"]}
    prompts = [torch.arange(3, 3 + count) for count in (60, 20)]
    target = Target.proved(make_family("llama", rope_parameters=rope))
    (_, alone) = own_logits("llama", prompts, rope_parameters=rope)

    (_, beside) = paged_logits(target, prompts, [60])

    assert float((beside - alone).abs().max()) > 1e-2


def test_an_unknown_rotary_kind_is_refused() -> None:
    """By its name, whoever can't read it first."""
    model = make_family("llama")
    model.config.rope_parameters["rope_type"] = "spiral"

    with pytest.raises(UsageError, match="'spiral'"):
        Target(model)


# --- windows --------------------------------------------------------------------------------------


def test_a_window_that_the_code_does_not_know_is_refused() -> None:
    """A Llama passes no window on; a flat `sliding_window` in its config would be ours alone."""
    with pytest.raises(UsageError, match="sliding_window") as caught:
        Target.proved(make_family("llama", sliding_window=8))
    assert "window of 8" in caught.value.message


def test_windows_of_a_llama_are_said_to_be_ours() -> None:
    """`layer_types` is computed as in vLLM, and a warning says that its own code does not."""
    types = ["full_attention", "sliding_attention"] * 2

    target = Target.proved(make_family("llama", layer_types=types, sliding_window=8))

    assert target.window == 8
    assert target.warnings == (
        "layer_types: windows are applied that LlamaForCausalLM itself passes over",
    )


def test_sinks_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    """Their file is no part of the account of tensors."""
    config = type("Config", (), {"attention_sinks": "sinks.safetensors"})
    save_file(
        {"attention_sinks": torch.tensor([[1.0, float("nan")]])}, tmp_path / "sinks.safetensors"
    )

    with pytest.raises(UsageError, match="sinks that are NaN"):
        read_sinks(tmp_path, config)


def test_a_window_as_wide_as_the_context_is_none() -> None:
    """It hides nothing, whoever knows it."""
    check("phimoe", sliding_window=CONTEXT)


# --- the proof at load ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_state_between_tokens_is_seen(dtype: torch.dtype) -> None:
    """A layer that looks at its left neighbour outside attention does not survive the proof."""

    def shift(_module: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
        (hidden,) = args
        return (hidden + torch.roll(hidden, 1, dims=1),)

    model = make_family("cohere").to(dtype)
    Target.proved(make_family("cohere").to(dtype))
    model.model.layers[2].mlp.register_forward_pre_hook(shift)

    with pytest.raises(UsageError, match="differ by"):
        Target.proved(model)


def test_a_table_chosen_by_the_longest_row_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rotary kind that nobody knows to change by length is found at the end of the context."""
    rope = {"rope_theta": 10000.0, **CHANGING["longrope"]}
    monkeypatch.setattr("eaglebench.model.target_config.table_limit", lambda _: None)

    with pytest.raises(UsageError, match="beside a row at the end of the context"):
        Target.proved(make_family("llama", rope_parameters=rope))


def test_logits_that_are_no_numbers_are_refused() -> None:
    """In the dtype of the run: what float32 holds can be too much for float16."""
    model = make_family("llama")
    with torch.no_grad():
        model.lm_head.weight.mul_(2e4)
    Target.proved(copy.deepcopy(model))
    half = model.to(torch.float16)

    with pytest.raises(UsageError, match="no finite numbers in float16"):
        Target.proved(half)
