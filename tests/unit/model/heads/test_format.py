"""Formats told apart, and the fields that they mean differently."""

from pathlib import Path
from typing import Any

import pytest
import torch

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.format import HeadFormat
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.target import Target
from tests.checkpoints import HIDDEN, make_head_tensors, make_model, publish_eagle3
from tests.loaded_heads import load_head


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
        ("specforge", {"norm_output": True}, True, "read as EAGLE 3.1, as engines do"),
        ("specforge", {"norm_output": False}, False, "read as plain EAGLE-3, as engines do"),
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
    """True is a normed next level, as engines read it; what SpecForge once meant is mentioned."""
    head = load_head(publish_eagle3(tmp_path, form, **fields), make_target())

    assert feeds_normed(head) == expected
    assert any("norm_output" in text for text in head.report.warnings) == (words is not None)
    assert words is None or words in head.report.warnings[0]


@pytest.mark.parametrize("is_normed", [True, False])
def test_fc_norm_settles_norm_output(tmp_path: Path, *, is_normed: bool) -> None:
    """Both are of EAGLE 3.1, so that nobody has to be asked what the writer meant."""
    tensors = make_head_tensors("fc_norm")
    folder = publish_eagle3(tmp_path, "specforge", tensors, fc_norm=True, norm_output=is_normed)
    head = load_head(folder, make_target())

    assert feeds_normed(head) == is_normed
    assert not any("norm_output" in text for text in head.report.warnings)


@pytest.mark.parametrize("is_normed", [True, False])
def test_norm_output_can_be_overruled(tmp_path: Path, *, is_normed: bool) -> None:
    """Whoever knows the trainer says it, and there is no doubt left to speak of."""
    folder = publish_eagle3(tmp_path, "specforge", norm_output=not is_normed)
    head = load_head(folder, make_target(), draft_config={"norm_output": is_normed})

    said = f"said otherwise (--draft-config): norm_output {str(is_normed).lower()}"
    assert feeds_normed(head) == is_normed
    assert [said in text for text in head.report.warnings if "norm_output" in text] == [True]


def test_silence_on_the_residual_is_mentioned(tmp_path: Path) -> None:
    """Speculators and vLLM read a missing `norm_before_residual` differently."""
    folder = publish_eagle3(tmp_path, "speculators", norm_before_residual=None)
    head = load_head(folder, make_target())

    assert "norm_before_residual is not given" in head.report.warnings[0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"speculators_model_type": "dflash"}, "a DFlash head, .* 'dflash'.* is no EAGLE head"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
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
