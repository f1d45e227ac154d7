"""Drafts of every step are those that the head's raw config asks for, computed slowly.

The inputs are published configurations beside the weights of the tiny head; the slow version reads
the JSON itself, keeps no cache and computes every draft from the first token on. float64.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from eaglebench.engine.models import Models
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import Target
from eaglebench.records.observation import RequestObservation
from tests.engines import TINY_HEAD, make_engine, make_knobs, make_request, run_all, tiny_models
from tests.head_runs import read_against
from tests.loaded_heads import load_head
from tests.plain_reading import PlainRead
from tests.prompts import shared_prefix_prompts

INPUTS = Path(__file__).parents[1] / "inputs" / "heads"
STEPS = 3
MORE: dict[str, dict[str, Any]] = {
    "as it ships": {},
    "share outside": {"partial_rotary_factor": 0.25},
    "stretched": {
        "rope_scaling": {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64}
    },
    "pressed": {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    "window by type": {"layer_types": ["sliding_attention"], "sliding_window": 5},
    "residual": {"norm_before_residual": True},
    "another activation": {"hidden_act": "gelu"},
    "few positions": {"max_position_embeddings": 90},
    "other states": {"eagle_aux_hidden_state_layer_ids": [0, 1, 4], "eagle_config": None},
    "states by a trainer": {
        "eagle_aux_hidden_state_layer_ids": None,
        "eagle_config": None,
        "target_layer_ids": [0, 1, 3],
    },
}


def write(folder: Path, config: dict[str, Any]) -> Path:
    """The tiny head's weights beside another config."""
    shutil.copytree(TINY_HEAD, folder)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def states_over(target: Target, ids: list[int], wanted: tuple[int, ...]) -> list[Tensor]:
    """[len(ids), hidden] of every wanted state over these tokens, without the engine."""
    layout = make_layout(
        [LayoutRow(np.arange(len(ids)), len(ids))], device=torch.device("cpu"), backend="loop"
    )
    output = target.forward(
        torch.tensor(ids),
        torch.arange(len(ids)),
        layout,
        target.make_pool(len(ids)),
        torch.tensor([0]),
        wanted,
    )
    assert output.aux is not None
    return list(output.aux.chunk(len(wanted), dim=-1))


def slow_drafts(read: PlainRead, ids: list[int], aux: list[Tensor], count: int) -> list[int]:
    """What the head foretells behind `ids`, of which all but the last have states."""
    features = read.head.fuse3([state[: len(ids) - 1] for state in aux])
    tokens = ids[1:]
    drafted: list[int] = []
    while len(drafted) < count:
        hidden, logits = read.head.run3(read.embedding[torch.tensor(tokens)], features)
        drafted.append(int(read.target_ids[logits[-1].argmax()]))
        tokens = [*tokens, drafted[-1]]
        features = torch.cat([features, hidden[-1:]])
    return drafted


def compare(folder: Path) -> tuple[int, list[tuple[int, tuple[int, ...]]]]:
    """Drafted tokens compared, and every step of the engine that drafted something else."""
    target = tiny_models().target
    read = read_against(folder, target)
    models = Models(target, load_head(folder, target))
    prompts = shared_prefix_prompts()[:2]
    requests = [make_request(f"r{n}", ids, max_new_tokens=30) for n, ids in enumerate(prompts)]
    knobs = make_knobs(page_size=4, chunked_prefill_size=16, parallel=2, steps=STEPS)
    observed = run_all(make_engine(knobs, models=models), requests)
    count, other = 0, []
    for request in requests:
        found: RequestObservation = observed[request.request_id]
        ids = [*request.prompt_token_ids, *found.output_token_ids]
        aux = states_over(target, ids, read.aux_layer_ids)
        for step in found.steps:
            if not step.drafted_ids:
                continue
            known = ids[: step.position + 1]
            expected = slow_drafts(read, known, aux, len(step.drafted_ids))
            count += len(expected)
            if expected != list(step.drafted_ids):
                other.append((step.position, step.drafted_ids))
    return count, other


@pytest.mark.parametrize("name", sorted(path.name for path in INPUTS.iterdir()))
def test_published_configurations_are_computed(tmp_path: Path, name: str) -> None:
    """A share inside rope_parameters, a flat window, both values of norm_output, copied layers."""
    config = json.loads((INPUTS / name / "config.json").read_text())

    count, other = compare(write(tmp_path / "head", config))

    assert other == []
    assert count > 30


@pytest.mark.parametrize("name", MORE)
def test_other_configurations_are_computed(tmp_path: Path, name: str) -> None:
    """Whatever else a config of this head can say, chunked, paged and two at a time."""
    config = json.loads((TINY_HEAD / "config.json").read_text())
    said = {key: value for key, value in (config | MORE[name]).items() if value is not None}

    count, other = compare(write(tmp_path / "head", said))

    assert other == []
    assert count > (8 if name == "few positions" else 30)


def test_configurations_draft_different_tokens(tmp_path: Path) -> None:
    """Each of the inputs that asks for other maths drafts something else than the head as it is."""
    target = tiny_models().target
    ids = list(shared_prefix_prompts()[0])
    drafts = {}
    for name in ("partial-nested", "window-flat", "norm-output-true", "layers40"):
        config = json.loads((INPUTS / name / "config.json").read_text())
        read = read_against(write(tmp_path / name, config), target)
        aux = states_over(target, ids, read.aux_layer_ids)
        ends = range(40, len(ids), 2)
        drafts[name] = [slow_drafts(read, ids[:end], aux, STEPS) for end in ends]
    usual = drafts.pop("layers40")

    assert len(usual) > 5
    assert all(found != usual for found in drafts.values())
