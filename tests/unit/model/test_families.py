"""Models that mix full and window layers, several windows long, against `transformers` itself.

Whole, in chunks, beside another request, in one pool and in two: float32 within 1e-4.
"""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from eaglebench.errors import CheckpointError
from eaglebench.kv.window import slots_in_front
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import Target
from eaglebench.model.target_config import layer_forms
from tests.hybrids import FAMILIES, MIXED, VOCAB, WINDOW, make_hybrid

CPU = torch.device("cpu")
NUM_TOKENS, NUM_SLOTS = 37, 128


def make_ids(seed: int) -> Tensor:
    """Random tokens."""
    return torch.randint(1, VOCAB, (NUM_TOKENS,), generator=torch.Generator().manual_seed(seed))


def run(
    target: Target, prompts: list[Tensor], pieces: list[int], *, two_pools: bool
) -> list[Tensor]:
    """Logits of all tokens, piece by piece; with two pools window layers get the window alone."""
    pool: Any = target.make_pool(NUM_SLOTS, fill=float("nan"))
    if two_pools:
        pool = target.make_hybrid_pool(NUM_SLOTS, NUM_SLOTS, fill=float("nan"))
    slots = [
        np.random.default_rng(n).permutation(NUM_TOKENS).astype(np.int64) + 1 + n * NUM_TOKENS
        for n in range(len(prompts))
    ]
    found: list[list[Tensor]] = [[] for _ in prompts]
    start = 0
    for size in pieces:
        end = start + size
        layout = make_layout([LayoutRow(s[:end], size) for s in slots], device=CPU, backend="loop")
        if two_pools:
            first = max(0, start - slots_in_front(target.window or 1))
            layout.window = make_layout(
                [LayoutRow(s[first:end], size) for s in slots], device=CPU, backend="loop"
            )
        ids = torch.cat([ids[start:end] for ids in prompts])
        positions = torch.arange(start, end).repeat(len(prompts))
        output = target.forward(ids, positions, layout, pool, torch.arange(len(ids)))
        for index, logits in enumerate(torch.split(output.logits, size)):
            found[index].append(logits)
        start = end
    return [torch.cat(parts) for parts in found]


@pytest.mark.parametrize("two_pools", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_transformers(family: str, two_pools: bool) -> None:  # a parameter
    """Windows, sinks, soft caps, experts and rotary kinds are the model's own."""
    torch.set_num_threads(1)
    prompts = [make_ids(0), make_ids(1)]
    model = make_hybrid(family)
    with torch.inference_mode():
        expected = [model(ids[None]).logits[0] for ids in prompts]
    target = Target(model)
    assert target.window == WINDOW

    for pieces in ([NUM_TOKENS], [11, 1, 20, 5], [1] * NUM_TOKENS):
        for count in (1, 2):
            got = run(target, prompts[:count], pieces, two_pools=two_pools)
            for mine, theirs in zip(got, expected, strict=False):
                assert torch.allclose(mine, theirs, atol=1e-4), (family, pieces, count)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer_types": ["chunked_attention"] * 4}, "layers of type chunked_attention"),
        ({"layer_types": MIXED[:3]}, "names 3 layers; the model has 4"),
        ({"layer_types": MIXED, "sliding_window": None}, "sliding_window is None"),
        ({"layer_types": MIXED, "sliding_window": 0}, "sliding_window is 0"),
    ],
)
def test_layers_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    """Before anything is computed."""
    config = type("Config", (), {"num_hidden_layers": 4, "num_attention_heads": 4, **changes})

    with pytest.raises(CheckpointError, match=message):
        layer_forms(config)


def test_sinks_have_to_fit() -> None:
    """One logit a head for every window layer, both shapes in the message."""
    config = type(
        "Config",
        (),
        {
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "layer_types": MIXED,
            "sliding_window": 8,
        },
    )

    with pytest.raises(CheckpointError, match=r"shape \(3, 4\); expected 2 window layers x 4"):
        layer_forms(config, torch.zeros(3, 4))
