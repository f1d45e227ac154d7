"""Rotary settings: every known kind against its definition, and what is refused."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from eaglebench.errors import CheckpointError
from eaglebench.model.heads.rope import read_rope
from tests.checkpoints import AUX_LAYER_IDS, make_head_tensors, publish_eagle3
from tests.head_runs import NUM_TOKENS, make_target, run_head, run_plain3, states_of
from tests.loaded_heads import load_head
from tests.plain_heads import plain_head

WIDTH, THETA = 8, 10000.0
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}


def usual() -> list[float]:
    """Angle a position, by pair of dimensions."""
    return [THETA ** (-2 * pair / WIDTH) for pair in range(WIDTH // 2)]


def linear(factor: float) -> list[float]:
    """Positions pressed together."""
    return [frequency / factor for frequency in usual()]


def llama3() -> list[float]:
    """Long waves are stretched, short ones kept, those between blended (Llama 3.1's rule)."""
    found = []
    for frequency in usual():
        turns = 64 * frequency / (2 * math.pi)  # in the original context
        if turns > 4:
            found.append(frequency)
        elif turns < 1:
            found.append(frequency / 8)
        else:
            share = (turns - 1) / (4 - 1)
            found.append((1 - share) * frequency / 8 + share * frequency)
    return found


def yarn() -> list[float]:
    """The same idea by dimension, between 32 turns and one (arXiv:2309.00071)."""

    def pair_with(turns: float) -> float:
        return WIDTH * math.log(32 / (turns * 2 * math.pi)) / (2 * math.log(THETA))

    low, high = max(math.floor(pair_with(32)), 0), min(math.ceil(pair_with(1)), WIDTH - 1)
    found = []
    for pair, frequency in enumerate(usual()):
        ramp = min(max((pair - low) / (high - low), 0), 1)
        found.append(frequency / 4 * ramp + frequency * (1 - ramp))
    return found


def publish(folder: Path, spelling: str, settings: dict[str, Any]) -> Path:
    """A head with rotary settings in one of the spellings."""
    if spelling == "rope_scaling":
        return publish_eagle3(folder, "sglang", rope_scaling=settings)
    return publish_eagle3(folder, "sglang", rope_parameters=settings)


@pytest.mark.parametrize("spelling", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize(
    ("settings", "frequencies", "amplitude"),
    [
        ({"type": "linear", "factor": 2.0}, linear(2), 1.0),
        ({"rope_type": "linear", "factor": "2.0"}, linear(2), 1.0),
        (LLAMA3, llama3(), 1.0),
        (YARN, yarn(), 0.1 * math.log(4) + 1),
    ],
)
def test_scaled_angles_equal_their_definition(
    tmp_path: Path,
    spelling: str,
    settings: dict[str, Any],
    frequencies: list[float],
    amplitude: float,
) -> None:
    """Old and new spelling, through the head's logits; they differ from unscaled ones."""
    target = make_target()
    head = load_head(publish(tmp_path, spelling, settings), target)
    aux = states_of(target, AUX_LAYER_IDS)
    told: dict[str, Any] = {"frequencies": Tensor(frequencies), "amplitude": amplitude}

    _, logits, _ = run_head(head, aux, [NUM_TOKENS])

    tensors, embedding = make_head_tensors(), target.embedding.weight
    scaled = run_plain3(plain_head(tensors, torch.float64, **told), embedding, aux)[1]
    unscaled = run_plain3(plain_head(tensors, torch.float64), embedding, aux)[1]
    torch.testing.assert_close(logits, scaled, atol=1e-5, rtol=0)
    assert not torch.allclose(logits, unscaled, atol=1e-3)


@pytest.mark.parametrize(
    ("parameters", "scaling", "theta"),
    [
        (None, None, None),
        (None, None, 10000.0),
        ({"rope_theta": 10000.0}, None, None),
        ({"rope_theta": "10000", "rope_type": "default"}, None, 7.0),
        (None, {"rope_theta": 1e4}, None),
        (None, {"type": "mrope", "mrope_section": [2, 1, 1]}, None),
    ],
)
def test_spellings_of_the_same_angles(
    parameters: dict[str, Any] | None, scaling: dict[str, Any] | None, theta: float | None
) -> None:
    """What is silent means 10000; a base beside the kind comes first."""
    assert read_rope(parameters, scaling, theta) == {"rope_type": "default", "rope_theta": 10000.0}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rope_scaling": {"rope_type": "spiral"}}, "'spiral' .*known: default, linear, llama3"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "'dynamic' is not known"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "'longrope' is not known"),
        ({"rope_scaling": {"factor": 2.0}}, "have no rope_type"),
        ({"rope_scaling": {"type": None, "factor": 2.0}}, "have no rope_type"),
        ({"rope_scaling": {"type": "linear"}}, "'linear' need a number for factor, not None"),
        ({"rope_scaling": {"type": "linear", "factor": "much"}}, "for factor, not 'much'"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, "factor is 0; expected at least 1"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "for low_freq_factor"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "for original_max_position"),
        ({"rope_scaling": "linear"}, "rope_scaling is 'linear'"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 3.0}}}, "by layer type"),
        (
            {"rope_parameters": {"rope_theta": 3.0}, "rope_scaling": {"type": "linear"}},
            r"two types: \['default', 'linear'\]",
        ),
        ({"rope_theta": 0}, "rope_theta is 0"),
        ({"rope_theta": "far"}, "rope_theta is 'far'"),
        ({"partial_rotary_factor": 0.4}, "3 of 8 dimensions"),
    ],
)
def test_angles_that_are_refused(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    """Rather than read as something else; what was wrong is named."""
    with pytest.raises(CheckpointError, match=message):
        load_head(publish_eagle3(tmp_path, "sglang", **fields), make_target())
