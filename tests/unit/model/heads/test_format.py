"""Formats told apart, and the fields that they mean differently."""

from pathlib import Path
from typing import Any

import pytest
import torch

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.format import HeadFormat
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.heads.loading import load_head
from eaglebench.model.target import Target
from tests.checkpoints import HIDDEN, make_model, publish_eagle3


def make_target() -> Target:
    """A target in float64."""
    torch.set_num_threads(1)
    return Target(make_model(dtype=torch.float64))


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("specforge", HeadFormat.SAFEAILAB),
        ("sglang", HeadFormat.SGLANG),
        ("vllm", HeadFormat.SGLANG),
        ("speculators", HeadFormat.SPECULATORS),
    ],
)
def test_formats_are_told_apart(tmp_path: Path, form: str, expected: HeadFormat) -> None:
    """By the nested config and by what the layer is called."""
    head = load_head(publish_eagle3(tmp_path, form), make_target())

    assert head.report.form is expected


def feeds_normed(head: DraftHead) -> bool:
    """Whether the next level's features are normed already, so that logits don't norm them."""
    hidden = torch.full((1, HIDDEN), 3.0, dtype=torch.float64)
    return not torch.allclose(head.logits(hidden), head.logits(2 * hidden), atol=1e-3)


@pytest.mark.parametrize(
    ("form", "fields", "expected", "words"),
    [
        ("specforge", {}, False, None),
        ("specforge", {"norm_output": True}, False, "SpecForge up to 0.2.0"),
        ("specforge", {"norm_output": True, "_torchspec_version": "1"}, True, None),
        ("sglang", {}, False, None),
        ("sglang", {"norm_output": False}, False, None),
        ("sglang", {"norm_output": True}, True, None),
        ("vllm", {"norm_output": True}, True, None),
        ("speculators", {"norm_output": True}, True, None),
    ],
)
def test_norm_output_means_what_its_format_means(
    tmp_path: Path, form: str, fields: dict[str, Any], expected: object, words: str | None
) -> None:
    """A norm in front of lm_head alone for SpecForge, a normed next level for all others."""
    head = load_head(publish_eagle3(tmp_path, form, **fields), make_target())

    assert feeds_normed(head) == expected
    assert any("norm_output" in text for text in head.report.warnings) == (words is not None)
    assert words is None or words in head.report.warnings[0]


def test_norm_output_false_of_specforge_is_refused(tmp_path: Path) -> None:
    """It is one of two different heads; the message names both."""
    with pytest.raises(CheckpointError, match=r"without a norm .* plain EAGLE-3") as caught:
        load_head(publish_eagle3(tmp_path, "specforge", norm_output=False), make_target())
    assert "take norm_output out" in (caught.value.hint or "")


def test_silence_on_the_residual_is_mentioned(tmp_path: Path) -> None:
    """Speculators and vLLM read a missing `norm_before_residual` differently."""
    folder = publish_eagle3(tmp_path, "speculators", norm_before_residual=None)
    head = load_head(folder, make_target())

    assert "norm_before_residual is not given" in head.report.warnings[0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"speculators_model_type": "dflash"}, "'dflash' is no EAGLE head"),
        ({"num_hidden_layers": 2}, "2 layers; a head has 1"),
        ({"layer_types": ["linear_attention"]}, "linear_attention are unknown"),
        ({"hidden_size": "wide"}, "hidden_size"),
    ],
)
def test_configs_that_are_refused(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    """With the field that is wrong."""
    with pytest.raises(CheckpointError, match=message):
        load_head(publish_eagle3(tmp_path, "sglang", **fields), make_target())


@pytest.mark.parametrize("text", [None, "{", "[1]"])
def test_a_folder_without_a_config_is_refused(tmp_path: Path, text: str | None) -> None:
    """The file is named."""
    folder = publish_eagle3(tmp_path, "sglang")
    (folder / "config.json").unlink()
    if text is not None:
        (folder / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load_head(folder, make_target())
