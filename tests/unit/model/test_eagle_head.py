"""The head against a plain version of itself, and what its loader refuses."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from eaglebench.errors import CheckpointError
from eaglebench.model.attention_plan import PlanRow, make_plan
from eaglebench.model.eagle_head import EagleHead
from eaglebench.model.target import Target
from tests.checkpoints import (
    DRAFT_VOCAB,
    HIDDEN,
    VOCAB,
    make_head_config,
    make_head_tensors,
    make_model,
    write_head,
)

CPU = torch.device("cpu")
HEADS, KV_HEADS, WIDTH, EPS = 4, 2, 8, 1e-5
NUM_TOKENS = 11


def make_target(**changes: Any) -> Target:
    """A target in float64."""
    torch.set_num_threads(1)
    return Target(make_model(dtype=torch.float64, **changes))


def plain_norm(hidden: Tensor, weight: Tensor) -> Tensor:
    """Root-mean-square norm by its definition."""
    return hidden / torch.sqrt((hidden * hidden).mean(-1, keepdim=True) + EPS) * weight


def plain_rotate(heads: Tensor) -> Tensor:
    """Rotary embedding of [num_tokens, heads, width] by complex numbers."""
    half = WIDTH // 2
    inverse = 10000.0 ** (-torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
    angle = torch.arange(len(heads), dtype=torch.float64)[:, None] * inverse
    turned = torch.complex(heads[..., :half], heads[..., half:]) * torch.polar(
        torch.ones_like(angle), angle
    ).unsqueeze(1)
    return torch.cat([turned.real, turned.imag], dim=-1)


def plain_head(
    weights: dict[str, Tensor], embedding: Tensor, ids: Tensor, aux: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states, logits and keys of slots 0 .. n - 1, one token after another."""
    weight = {n.removeprefix("midlayer."): t.double() for n, t in weights.items()}
    features = aux @ weight["fc.weight"].T
    joined = torch.cat(
        [
            plain_norm(embedding[ids], weight["input_layernorm.weight"]),
            plain_norm(features, weight["hidden_norm.weight"]),
        ],
        dim=-1,
    )
    query, key, value = (
        (joined @ weight[f"self_attn.{n}_proj.weight"].T).view(len(ids), -1, WIDTH) for n in "qkv"
    )
    query, key = plain_rotate(query), plain_rotate(key)
    rows = []
    for row in range(len(ids)):
        heads = []
        for head in range(HEADS):
            shared = head // (HEADS // KV_HEADS)
            scores = key[: row + 1, shared] @ query[row, head] / WIDTH**0.5
            heads.append(torch.softmax(scores, dim=0) @ value[: row + 1, shared])
        rows.append(torch.cat(heads))
    hidden = features + torch.stack(rows) @ weight["self_attn.o_proj.weight"].T
    normed = plain_norm(hidden, weight["post_attention_layernorm.weight"])
    gate = F.silu(normed @ weight["mlp.gate_proj.weight"].T)
    up = normed @ weight["mlp.up_proj.weight"].T
    hidden = hidden + (gate * up) @ weight["mlp.down_proj.weight"].T
    logits = plain_norm(hidden, weight["norm.weight"]) @ weight["lm_head.weight"].T
    return hidden, logits, key


@pytest.mark.parametrize("pieces", [[NUM_TOKENS], [4, 1, 6]])
def test_equals_the_plain_version(tmp_path: Path, pieces: list[int]) -> None:
    """Hidden states, logits and the KV of every slot, whole and in pieces."""
    target = make_target()
    head = EagleHead.load(write_head(tmp_path), target)
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(0, VOCAB, (NUM_TOKENS,), generator=generator)
    aux = torch.randn(NUM_TOKENS, 3 * HIDDEN, generator=generator, dtype=torch.float64)
    slots = (np.random.default_rng(0).permutation(NUM_TOKENS) + 1).astype(np.int64)
    pool = head.make_pool(32, fill=float("nan"))
    found, start = [], 0
    for size in pieces:
        end = start + size
        plan = make_plan([PlanRow(slots[:end], size)], device=CPU, backend="loop")
        features = head.fuse(aux[start:end])
        found.append(head.forward(ids[start:end], features, torch.arange(start, end), plan, pool))
        start = end
    hidden, logits, key = plain_head(make_head_tensors(), target.embedding.weight, ids, aux)
    got_key, _ = pool.gather(0, torch.from_numpy(slots))

    assert torch.allclose(torch.cat(found), hidden, atol=1e-5)
    assert torch.allclose(head.logits(torch.cat(found)), logits, atol=1e-5)
    assert torch.allclose(got_key.transpose(0, 1), key, atol=1e-5)


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
    head = EagleHead.load(write_head(tmp_path, tensors=renamed), make_target())

    assert head.draft_vocab_size == DRAFT_VOCAB
    assert set(head.report.sources) > {"fc.weight", "embed_tokens.weight"}


def test_both_sides_of_a_mismatch_are_listed(tmp_path: Path) -> None:
    """An unknown tensor and a missing one are named in one message."""
    tensors = make_head_tensors()
    tensors["surprise.weight"] = tensors.pop("norm.weight")
    with pytest.raises(CheckpointError, match=r"surprise\.weight.*missing: norm\.weight"):
        EagleHead.load(write_head(tmp_path, tensors=tensors), make_target())


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
    head = EagleHead.load(write_head(tmp_path, tensors=tensors), make_target())

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
        EagleHead.load(write_head(tmp_path, tensors=tensors), make_target())


def test_t2d_is_checked_against_d2t(tmp_path: Path) -> None:
    """A mask that marks other ids is refused."""
    tensors = make_head_tensors()
    tensors["t2d"][1] = True
    with pytest.raises(CheckpointError, match="t2d marks 65"):
        EagleHead.load(write_head(tmp_path, tensors=tensors), make_target())


def test_the_file_decides_a_silent_vocabulary(tmp_path: Path) -> None:
    """Without draft_vocab_size lm_head's rows count; a contradiction names both."""
    silent = make_head_config(draft_vocab_size=None)
    target = make_target()
    head = EagleHead.load(write_head(tmp_path / "a", config=silent), target)
    assert head.draft_vocab_size == DRAFT_VOCAB
    with pytest.raises(CheckpointError, match=r"250.*64"):
        EagleHead.load(
            write_head(tmp_path / "b", config=make_head_config(draft_vocab_size=250)), target
        )


def test_a_head_without_lm_head_is_refused(tmp_path: Path) -> None:
    """A tie flag can't stand in for a reduced head."""
    tensors = make_head_tensors()
    del tensors["lm_head.weight"]
    config = make_head_config(tie_word_embeddings=True)
    with pytest.raises(CheckpointError, match=r"missing: lm_head\.weight"):
        EagleHead.load(write_head(tmp_path, tensors=tensors, config=config), make_target())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (1, 3, 5)),
        ({"eagle_config": {}, "eagle_aux_hidden_state_layer_ids": [0, 2, 4]}, (0, 2, 4)),
    ],
)
def test_aux_ids_nested_and_at_top_level(
    tmp_path: Path, changes: dict[str, Any], expected: tuple[int, ...]
) -> None:
    """Both published places are read, and the report says what is in use."""
    config = make_head_config(**changes)
    head = EagleHead.load(write_head(tmp_path, config=config), make_target())

    assert head.report.aux_layer_ids == head.aux_layer_ids == expected


@pytest.mark.parametrize(
    ("ids", "message"), [([1, 3, 6], "layer 6"), ([1, 3], r"expected \(32, 64\)")]
)
def test_aux_ids_that_do_not_fit(tmp_path: Path, ids: list[int], message: str) -> None:
    """A layer past the end and a wrong count are refused."""
    config = make_head_config(eagle_config={"eagle_aux_hidden_state_layer_ids": ids})
    with pytest.raises(CheckpointError, match=message):
        EagleHead.load(write_head(tmp_path, config=config), make_target())


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4, 5, 6, 8])
def test_default_aux_layers(tmp_path: Path, num_layers: int) -> None:
    """The usual rule comes with a warning, and shallow targets with a way out."""
    folder = write_head(tmp_path, config=make_head_config(eagle_config={}))
    target = make_target(num_hidden_layers=num_layers)
    if num_layers == 8:
        head = EagleHead.load(folder, target)
        assert head.aux_layer_ids == (2, 4, 5)
        assert "(2, 4, 5)" in head.report.warnings[0]
        return
    with pytest.raises(CheckpointError) as caught:
        EagleHead.load(folder, target)
    assert "eagle_aux_hidden_state_layer_ids" in (caught.value.hint or "")


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
        head = EagleHead.load(write_head(tmp_path / name, config=config), target)
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
        EagleHead.load(write_head(tmp_path, config=config), make_target())


def test_a_head_for_another_vocabulary_is_refused(tmp_path: Path) -> None:
    """Both sizes are named."""
    tensors = make_head_tensors()
    del tensors["d2t"], tensors["t2d"]
    config = make_head_config(vocab_size=264)
    with pytest.raises(CheckpointError, match=r"264.*256"):
        EagleHead.load(write_head(tmp_path, tensors=tensors, config=config), make_target())


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
    EagleHead.load(folder, target)
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError):
        EagleHead.load(folder, target)
    assert not marker.exists()
    torch.save(make_head_tensors(), folder / "pytorch_model.bin")
    assert EagleHead.load(folder, target).draft_vocab_size == DRAFT_VOCAB
