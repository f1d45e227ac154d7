"""What the loader places, reports and refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from eaglebench.errors import CheckpointError
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.layout_row import LayoutRow
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
from tests.loaded_heads import load_head

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


def test_tables_are_read_and_checked(tmp_path: Path) -> None:
    """The table's warning is the head's, its contradiction the loader's."""
    tensors = make_head_tensors()
    tensors["d2t"] = 3 * torch.arange(DRAFT_VOCAB)
    target = make_target()
    head = load_head(write_head(tmp_path, tensors=tensors), target)
    assert head.target_ids(torch.tensor([DRAFT_VOCAB - 1])).tolist() == [189]
    assert "absolute ids" in head.report.warnings[-1]
    tensors["t2d"][1] = True
    with pytest.raises(CheckpointError, match="t2d marks 65"):
        load_head(write_head(tmp_path, tensors=tensors), target)


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


@pytest.mark.parametrize("has_table", [True, False])
def test_a_head_for_another_vocabulary_is_refused(tmp_path: Path, *, has_table: bool) -> None:
    """Both sizes are named, whether or not a table would send its ids somewhere."""
    tensors = make_head_tensors()
    if not has_table:
        del tensors["d2t"], tensors["t2d"]
    config = make_head_config(vocab_size=2000)
    with pytest.raises(CheckpointError, match=r"2000.*256"):
        load_head(write_head(tmp_path, tensors=tensors, config=config), make_target())


@pytest.mark.parametrize("size", [250, 264])
def test_another_padding_is_no_other_vocabulary(tmp_path: Path, size: int) -> None:
    """Embeddings and lm_head are cut or filled to the target's ids, and both sizes are mentioned."""
    tensors = make_head_tensors("embed_tokens")
    del tensors["d2t"], tensors["t2d"]
    generator = torch.Generator().manual_seed(9)
    for name in ("embed_tokens.weight", "lm_head.weight"):
        tensors[name] = torch.randn(size, HIDDEN, generator=generator)
    config = make_head_config(vocab_size=size, draft_vocab_size=size)
    head = load_head(write_head(tmp_path, tensors=tensors, config=config), make_target())
    last = torch.tensor([255])
    features = torch.ones(1, HIDDEN, dtype=torch.float64)
    layout = make_layout([LayoutRow(np.arange(1, 2), 1)], device=CPU, backend="loop")

    hidden = head.forward(last, features, torch.tensor([0]), layout, head.make_pool(4))

    assert torch.isfinite(head.logits(hidden)).all()
    assert head.draft_vocab_size == min(size, 256)
    assert f"vocabulary of {size}, the target has 256" in " ".join(head.report.warnings)


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("run", [torch.float64, torch.float32, torch.bfloat16])
def test_the_head_follows_the_targets_dtype(
    tmp_path: Path, stored: torch.dtype, run: torch.dtype
) -> None:
    """However it is stored, its table included, and whatever its config says about that."""
    tensors = {
        n: t.to(stored) if t.is_floating_point() else t for n, t in make_head_tensors().items()
    }
    tensors["d2t"] = tensors["d2t"].to(torch.float16)
    config = make_head_config(torch_dtype="float16", dtype="bfloat16")
    head = load_head(
        write_head(tmp_path, tensors=tensors, config=config), Target(make_model(dtype=run))
    )
    layout = make_layout([LayoutRow(np.arange(1, 5), 4)], device=CPU, backend="loop")
    features = head.fuse(torch.ones(4, 3 * HIDDEN, dtype=run))

    hidden = head.forward(torch.arange(4), features, torch.arange(4), layout, head.make_pool(8))

    assert {features.dtype, hidden.dtype, head.logits(hidden).dtype} == {run}


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
def test_quantised_weights_are_refused(tmp_path: Path, dtype: torch.dtype) -> None:
    """Read as plain numbers they would be another head."""
    tensors = make_head_tensors()
    tensors["fc.weight"] = tensors["fc.weight"].to(dtype)
    with pytest.raises(CheckpointError, match=r"fc\.weight is stored as (int8|float8)"):
        load_head(write_head(tmp_path, tensors=tensors), make_target())


def test_an_lm_head_beside_a_tie_is_used(tmp_path: Path) -> None:
    """With a warning, since SGLang would take the embeddings."""
    config = make_head_config(tie_word_embeddings=True)
    head = load_head(write_head(tmp_path, config=config), make_target())

    assert head.draft_vocab_size == DRAFT_VOCAB
    assert head.report.sources["lm_head.weight"] == "lm_head.weight"
    assert "tie_word_embeddings is true" in head.report.warnings[0]


def test_a_table_without_an_lm_head_is_refused(tmp_path: Path) -> None:
    """The target's lm_head can't stand in for a reduced one."""
    tensors = make_head_tensors()
    del tensors["lm_head.weight"]
    config = make_head_config(draft_vocab_size=None)
    with pytest.raises(CheckpointError, match="a d2t and no lm_head"):
        load_head(write_head(tmp_path, tensors=tensors, config=config), make_target())


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
