"""What the loader places, reports and refuses."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from eaglebench.errors import CheckpointError
from eaglebench.model.attention_plan import PlanRow, make_plan
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.heads.loading import load_head
from eaglebench.model.target import Target
from tests.checkpoints import (
    DRAFT_VOCAB,
    HIDDEN,
    make_eagle1_tensors,
    make_head_config,
    make_head_tensors,
    make_model,
    publish_eagle1,
    publish_eagle3,
    write_head,
)

CPU = torch.device("cpu")


def make_target(**changes: Any) -> Target:
    """A target in float64."""
    torch.set_num_threads(1)
    return Target(make_model(dtype=torch.float64, **changes))


@pytest.mark.parametrize(
    ("old", "new"),
    [("midlayer.", "layers.0."), ("", "model."), ("", "draft_model."), ("midlayer.", "midlayer.")],
)
def test_known_names_are_placed(tmp_path: Path, old: str, new: str) -> None:
    """Aliases and prefixes of the published formats load the same weights."""
    renamed = {
        new + n.removeprefix(old) if n.startswith(old) else n: t
        for n, t in make_head_tensors().items()
    }
    head = load_head(write_head(tmp_path, tensors=renamed), make_target())

    assert head.draft_vocab_size == DRAFT_VOCAB
    assert set(head.report.sources) > {"fc.weight", "embed_tokens.weight"}


def test_both_sides_of_a_mismatch_are_listed(tmp_path: Path) -> None:
    """An unknown tensor and a missing one are named in one message."""
    tensors = make_head_tensors()
    tensors["surprise.weight"] = tensors.pop("norm.weight")
    with pytest.raises(CheckpointError, match=r"surprise\.weight.*missing: norm\.weight"):
        load_head(write_head(tmp_path, tensors=tensors), make_target())


def make_tables(kind: str) -> Tensor:
    """One way to get d2t wrong or differently right."""
    ids = torch.arange(DRAFT_VOCAB)
    return {
        "zeros": torch.zeros_like(ids),
        "absolute": 3 * ids + 60,
        "int32": (2 * ids).to(torch.int32),
        "float": (2 * ids).to(torch.float32),
        "negative": ids - 200,
        "too large": ids + 1000,
        "fractions": ids + 0.5,
        "short": ids[:-1],
    }[kind]


@pytest.mark.parametrize(
    ("kind", "last"), [("zeros", 63), ("absolute", 249), ("int32", 189), ("float", 189)]
)
def test_tables_that_make_sense(tmp_path: Path, kind: str, last: int) -> None:
    """Offsets of any whole type are offsets; ids that only fit as ids are ids, with a warning."""
    tensors = make_head_tensors()
    tensors["d2t"] = make_tables(kind)
    del tensors["t2d"]
    head = load_head(write_head(tmp_path, tensors=tensors), make_target())

    assert head.target_ids(torch.tensor([DRAFT_VOCAB - 1])).tolist() == [last]
    assert bool(head.report.warnings) == (kind == "absolute")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("negative", "draft id 0 to -200"),
        ("too large", "draft id 0 to 1000"),
        ("fractions", "fractions"),
        ("short", "shape"),
    ],
)
def test_tables_that_make_none(tmp_path: Path, kind: str, message: str) -> None:
    """The first bad index, or the form that is wrong, is named."""
    tensors = make_head_tensors()
    tensors["d2t"] = make_tables(kind)
    del tensors["t2d"]
    with pytest.raises(CheckpointError, match=message):
        load_head(write_head(tmp_path, tensors=tensors), make_target())


def test_t2d_is_checked_against_d2t(tmp_path: Path) -> None:
    """A mask that marks other ids is refused."""
    tensors = make_head_tensors()
    tensors["t2d"][1] = True
    with pytest.raises(CheckpointError, match="t2d marks 65"):
        load_head(write_head(tmp_path, tensors=tensors), make_target())


def test_the_file_decides_a_silent_vocabulary(tmp_path: Path) -> None:
    """Without draft_vocab_size lm_head's rows count; a contradiction names both."""
    silent = make_head_config(draft_vocab_size=None)
    target = make_target()
    head = load_head(write_head(tmp_path / "a", config=silent), target)
    assert head.draft_vocab_size == DRAFT_VOCAB
    with pytest.raises(CheckpointError, match=r"250.*64"):
        load_head(write_head(tmp_path / "b", config=make_head_config(draft_vocab_size=250)), target)


def test_a_head_without_lm_head_is_refused(tmp_path: Path) -> None:
    """A tie flag can't stand in for a reduced head."""
    tensors = make_head_tensors()
    del tensors["lm_head.weight"]
    config = make_head_config(tie_word_embeddings=True)
    with pytest.raises(CheckpointError, match=r"missing: lm_head\.weight"):
        load_head(write_head(tmp_path, tensors=tensors, config=config), make_target())


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"rope_theta": "10000"}, True),
        ({"rope_theta": None, "rope_parameters": {"rope_theta": 10000.0}}, True),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, False),
        ({"rope_theta": 500000.0}, False),
    ],
)
def test_rotary_settings_reach_the_keys(
    tmp_path: Path, changes: dict[str, Any], *, same: bool
) -> None:
    """Old and new spellings agree; scaling and base change the keys."""
    target = make_target()
    pools = []
    for name, config in (("a", make_head_config()), ("b", make_head_config(**changes))):
        head = load_head(write_head(tmp_path / name, config=config), target)
        pool = head.make_pool(16)
        plan = make_plan([PlanRow(np.arange(1, 9), 8)], device=CPU, backend="loop")
        features = torch.ones(8, HIDDEN, dtype=torch.float64)
        head.forward(torch.arange(8), features, torch.arange(8), plan, pool)
        pools.append(pool.keys[0])

    assert torch.equal(*pools) == same


def test_an_unknown_rotary_type_is_refused(tmp_path: Path) -> None:
    """The type is named with those that are known."""
    config = make_head_config(rope_scaling={"rope_type": "spiral"})
    with pytest.raises(CheckpointError, match=r"spiral.*llama3"):
        load_head(write_head(tmp_path, config=config), make_target())


def test_a_head_for_another_vocabulary_is_refused(tmp_path: Path) -> None:
    """Both sizes are named."""
    tensors = make_head_tensors()
    del tensors["d2t"], tensors["t2d"]
    config = make_head_config(vocab_size=264)
    with pytest.raises(CheckpointError, match=r"264.*256"):
        load_head(write_head(tmp_path, tensors=tensors, config=config), make_target())


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        """What a pickle runs."""
        return os.mkdir, (str(self.marker),)


def test_a_pickle_runs_nothing(tmp_path: Path) -> None:
    """A .bin with code in it is refused, a plain one is read, safetensors comes first."""
    marker = tmp_path / "marker"
    folder = write_head(tmp_path / "head")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(marker), protocol=2))
    target = make_target()
    load_head(folder, target)
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError):
        load_head(folder, target)
    assert not marker.exists()
    torch.save(make_head_tensors(), folder / "pytorch_model.bin")
    assert load_head(folder, target).draft_vocab_size == DRAFT_VOCAB


# --- algorithms -------------------------------------------------------------------------------


def load_as(tmp_path: Path, kind: str, algorithm: str | None) -> DraftHead:
    """A head of one kind, asked for as another."""
    publish = publish_eagle1 if kind == "EAGLE" else publish_eagle3
    return load_head(publish(tmp_path, "sglang"), make_target(), algorithm=algorithm)


@pytest.mark.parametrize("kind", ["EAGLE", "EAGLE3"])
def test_the_head_says_what_it_is(tmp_path: Path, kind: str) -> None:
    """Asked for by its own name or by none."""
    assert load_as(tmp_path, kind, None).algorithm == kind
    assert load_as(tmp_path, kind, kind).algorithm == kind


@pytest.mark.parametrize(("kind", "other"), [("EAGLE", "EAGLE3"), ("EAGLE3", "EAGLE")])
def test_the_other_kind_is_refused(tmp_path: Path, kind: str, other: str) -> None:
    """Both are named, and the hint says which flag would do."""
    with pytest.raises(CheckpointError, match=f"--algorithm {other} .* an {kind} head") as caught:
        load_as(tmp_path, kind, other)
    assert f"--algorithm {kind}," in (caught.value.hint or "")


# --- widths -----------------------------------------------------------------------------------


def test_another_width_without_embeddings_is_refused(tmp_path: Path) -> None:
    """With both widths and what is needed."""
    tensors = make_head_tensors()
    tensors["fc.weight"] = torch.ones(HIDDEN, 3 * 48)
    folder = publish_eagle3(tmp_path, "sglang", tensors)
    with pytest.raises(CheckpointError, match="embeddings are 48 wide, the head is 32") as caught:
        load_head(folder, make_target(hidden_size=48))
    assert "embeddings of its own" in (caught.value.hint or "")


@pytest.mark.parametrize("kind", ["EAGLE", "last state"])
def test_states_that_go_on_need_the_targets_width(tmp_path: Path, kind: str) -> None:
    """Both widths are named; embeddings of its own don't help."""
    if kind == "EAGLE":
        folder = publish_eagle1(tmp_path, "sglang", make_eagle1_tensors("embed_tokens"))
    else:
        tensors = make_head_tensors("embed_tokens")
        del tensors["fc.weight"]
        block = {"use_aux_hidden_state": False}
        folder = publish_eagle3(tmp_path, "vllm", tensors, None, eagle_config=block)
    with pytest.raises(CheckpointError, match="the head is 32 wide, the target 48"):
        load_head(folder, make_target(hidden_size=48))


def test_a_head_made_for_another_width_is_refused(tmp_path: Path) -> None:
    """`target_hidden_size` and the target's own are named."""
    folder = publish_eagle3(tmp_path, "sglang", target_hidden_size=4096)
    with pytest.raises(CheckpointError, match="hidden size 4096, the target has 32"):
        load_head(folder, make_target())


def test_eagle1_with_another_vocabulary_is_refused(tmp_path: Path) -> None:
    """Its lm_head would name other tokens."""
    tensors = make_eagle1_tensors() | {"lm_head.weight": torch.ones(100, HIDDEN)}
    with pytest.raises(CheckpointError, match="100 rows, the target's vocabulary 256"):
        load_head(publish_eagle1(tmp_path, "sglang", tensors), make_target())
