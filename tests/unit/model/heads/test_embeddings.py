"""Embeddings that a head brings: which are used, how like the target's they are, and what is said."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from eaglebench.model.heads.embeddings import compare, compare_with_folder
from eaglebench.training.heads import inspect_head
from tests.checkpoints import (
    HIDDEN,
    VOCAB,
    make_head_tensors,
    make_model,
    publish_eagle1,
    publish_eagle3,
)
from tests.head_runs import make_target
from tests.loaded_heads import load_head

ROUNDED, NOISE = "a rounded copy", "noise"


def own_embeddings(kind: str) -> Tensor:
    """A rounded copy of the target's, or rows of noise."""
    if kind == ROUNDED:
        return make_target().embedding.weight.detach().to(torch.bfloat16).clone()
    return torch.randn(VOCAB, HIDDEN, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(("kind", "is_doubtful"), [(ROUNDED, False), (NOISE, True)])
def test_a_run_says_whose_embeddings_are_used(
    tmp_path: Path, kind: str, *, is_doubtful: bool
) -> None:
    """The head's own, how like the target's, and a warning where they can't be meant."""
    tensors = make_head_tensors() | {"embed_tokens.weight": own_embeddings(kind)}
    head = load_head(publish_eagle3(tmp_path, "sglang", tensors), make_target())

    assert head.report.embeddings.startswith("the head's own: mean cosine ")
    warned = [text for text in head.report.warnings if "unlike its target's" in text]
    assert bool(warned) == is_doubtful


def test_without_its_own_the_targets_are_used(tmp_path: Path) -> None:
    """As most heads of EAGLE-3 mean it."""
    head = load_head(publish_eagle3(tmp_path, "sglang"), make_target())

    assert head.report.embeddings == "the target's embeddings"


@pytest.mark.parametrize(("kind", "is_doubtful"), [(ROUNDED, False), (NOISE, True)])
def test_inspect_reads_the_targets_from_its_folder(
    tmp_path: Path, kind: str, *, is_doubtful: bool
) -> None:
    """Without loading it; the same sentence and the same warning as in a run."""
    make_model().save_pretrained(tmp_path / "target")
    tensors = make_head_tensors() | {"embed_tokens.weight": own_embeddings(kind)}
    folder = publish_eagle3(tmp_path / "head", "sglang", tensors)

    report = inspect_head(folder, tmp_path / "target")

    assert "mean cosine" in report.embeddings
    assert any("unlike" in text for text in report.warnings) == is_doubtful
    assert "not compared" in inspect_head(folder, None).embeddings


def test_likeness_is_what_it_says() -> None:
    """Cosine and relative difference of known tables, over more rows than are sampled."""
    table = torch.randn(9000, 4, generator=torch.Generator().manual_seed(1))

    same, twice, other = compare(table, table), compare(2 * table, table), compare(-table, table)

    assert same is not None
    assert twice is not None
    assert other is not None
    assert (round(same.cosine, 5), same.difference) == (1.0, 0.0)
    assert (round(twice.cosine, 5), round(twice.difference, 5)) == (1.0, 1.0)
    assert round(other.cosine, 5) == -1.0
    assert 4000 <= same.rows <= 4096
    assert compare(table, table[:, :2]) is None


def test_a_folder_without_embeddings_is_no_fault(tmp_path: Path) -> None:
    """Nothing is known then, and said so."""
    assert compare_with_folder(torch.ones(4, 4), tmp_path) is None


def test_a_borrowed_lm_head_is_mentioned(tmp_path: Path) -> None:
    """In EAGLE-3, where heads have their own as a rule; an EAGLE-1 head has none by design."""
    tensors = make_head_tensors()
    for name in ("lm_head.weight", "d2t", "t2d"):
        del tensors[name]
    folder = publish_eagle3(tmp_path / "a", "sglang", tensors, draft_vocab_size=None)
    head = load_head(folder, make_target())
    other = load_head(publish_eagle1(tmp_path / "b", "sglang"), make_target())

    said = "the head has no lm_head; the target's lm_head stands in for it"
    assert said in head.report.warnings
    assert said in inspect_head(folder, None).warnings
    assert other.report.warnings == []
