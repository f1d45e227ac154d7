"""Fields of a head's config that are said otherwise: the same as if the file said so."""

import json
from pathlib import Path
from typing import Any

import pytest

from eaglebench.errors import CheckpointError, UsageError
from eaglebench.model.heads.overrides import SETTABLE
from eaglebench.model.heads.published import read_published
from tests.checkpoints import AUX_LAYER_IDS, publish_eagle1, publish_eagle3
from tests.head_runs import assert_as_written, make_target
from tests.loaded_heads import load_head

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
FILES: dict[str, dict[str, Any]] = {
    "plain": {},
    "much": {
        "rope_theta": None,
        "rope_parameters": {**YARN, "rope_theta": 500.0, "partial_rotary_factor": 0.5},
        "layer_types": ["sliding_attention"],
        "sliding_window": 5,
        "norm_output": True,
    },
}
CASES: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    # what is said otherwise, of which file, and the file that says so itself
    ({"max_position_embeddings": 7}, "plain", {"max_position_embeddings": 7}),
    ({"max_position_embeddings": None}, "plain", {"max_position_embeddings": None}),
    ({"rope_theta": 300}, "plain", {"rope_theta": 300}),
    ({"rope_scaling": YARN}, "plain", {"rope_scaling": YARN}),
    ({"norm_output": True}, "plain", {"norm_output": True}),
    (
        {"sliding_window": 3},
        "plain",
        {"sliding_window": 3, "layer_types": ["sliding_attention"]},
    ),
    ({"partial_rotary_factor": 0.5}, "plain", {"partial_rotary_factor": 0.5}),
    ({"hidden_act": "relu"}, "plain", {"hidden_act": "relu"}),
    ({"norm_output": False}, "much", {**FILES["much"], "norm_output": False}),
    ({"sliding_window": 3}, "much", {**FILES["much"], "sliding_window": 3}),
    (
        {"sliding_window": None},
        "much",
        {**FILES["much"], "layer_types": None, "sliding_window": None},
    ),
    (
        {"rope_theta": 300.0},
        "much",
        {
            **FILES["much"],
            "rope_parameters": {**FILES["much"]["rope_parameters"], "rope_theta": 300.0},
        },
    ),
    (
        {"rope_scaling": None},
        "much",
        {
            **FILES["much"],
            "rope_parameters": {"rope_theta": 500.0, "partial_rotary_factor": 0.5},
        },
    ),
    (
        {"rotary_dim": 2},
        "much",
        {**FILES["much"], "rope_parameters": {**YARN, "rope_theta": 500.0}, "rotary_dim": 2},
    ),
]


@pytest.mark.parametrize(("changes", "file", "said"), CASES)
@pytest.mark.parametrize("form", ["sglang", "vllm", "speculators"])
def test_a_field_said_otherwise_is_computed(
    tmp_path: Path, form: str, changes: dict[str, Any], file: str, said: dict[str, Any]
) -> None:
    """The head is the one whose file says so, in every format; nothing of the old field stays."""
    target = make_target()
    folder = publish_eagle3(tmp_path / "a", form, **FILES[file])
    asked = publish_eagle3(tmp_path / "b", form, **said)

    head = load_head(folder, target, draft_config=changes)

    assert_as_written(head, asked, target, 1e-5)


def test_the_file_stays_as_it_is(tmp_path: Path) -> None:
    """What is said otherwise is said for one run."""
    folder = publish_eagle3(tmp_path, "speculators")
    before = (folder / "config.json").read_text()

    read_published(folder, {"rope_theta": 5.0, "sliding_window": 3})

    assert (folder / "config.json").read_text() == before


def test_an_unknown_field_can_be_taken_out(tmp_path: Path) -> None:
    """The way out of a refusal: whoever knows that it is harmless says so."""
    folder = publish_eagle3(tmp_path, "vllm", eagle_config={"mystery": 1}, surprise=2)
    with pytest.raises(CheckpointError, match=r"mystery|surprise"):
        read_published(folder)

    head = read_published(folder, {"mystery": None, "surprise": None})

    assert "surprise" not in head.raw


def test_ids_can_be_taken_out(tmp_path: Path) -> None:
    """Where two places that name layers contradict each other, one of them goes."""
    target = make_target()
    folder = publish_eagle3(tmp_path, "vllm", target_layer_ids=[7, 8, 9])
    with pytest.raises(CheckpointError, match="target_layer_ids"):
        load_head(folder, target)

    head = load_head(folder, target, draft_config={"target_layer_ids": None})

    assert head.aux_layer_ids == AUX_LAYER_IDS


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rope_tetha": 1.0}, "rope_tetha: not a field of a head's config that is read here"),
        ({"bos_token_id": 1}, "bos_token_id: not a field"),
        ({"bos_token_id": None}, "bos_token_id: not a field"),
        ({"nowhere": None}, "nowhere: not a field"),
        ({"target_layer_ids": None}, "target_layer_ids: not a field"),
        ({"eagle_aux_hidden_state_layer_ids": [1, 2, 3]}, "how ids are counted differs"),
        ({"rope_theta": "far"}, "rope_theta is 'far'"),
        ({"sliding_window": 0}, "sliding_window is 0"),
        ({"norm_output": "yes"}, "norm_output is 'yes'"),
        ({"hidden_size": 64}, "hidden_size"),
    ],
)
def test_what_can_not_be_said_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    """A field that is not read would have no effect."""
    with pytest.raises(UsageError, match=message):
        load_head(publish_eagle3(tmp_path, "sglang"), make_target(), draft_config=changes)


def test_the_known_fields_are_listed(tmp_path: Path) -> None:
    """In the hint, all of them."""
    with pytest.raises(UsageError) as caught:
        read_published(publish_eagle3(tmp_path, "sglang"), {"colour": "red"})

    hint = caught.value.hint or ""
    assert all(name in hint for name in SETTABLE)
    assert {"max_position_embeddings", "rope_theta", "norm_output", "sliding_window"} < set(
        SETTABLE
    )


@pytest.mark.parametrize("name", ["norm_output", "tie_word_embeddings", "draft_vocab_size"])
def test_what_a_kind_of_head_does_not_ask_for_is_refused(tmp_path: Path, name: str) -> None:
    """An EAGLE-1 head would be the same with it."""
    with pytest.raises(UsageError, match=f"{name}: an EAGLE-1 head has no such thing"):
        read_published(publish_eagle1(tmp_path, "sglang"), {name: None})


def test_the_settings_of_a_file_are_typed(tmp_path: Path) -> None:
    """A config of another kind of value is read as JSON has it."""
    folder = publish_eagle3(tmp_path, "sglang")
    config = json.loads((folder / "config.json").read_text())

    head = read_published(folder, {"rope_scaling": json.loads(json.dumps(YARN))})

    assert head.config.rope["factor"] == 4.0
    assert "rope_scaling" not in config
