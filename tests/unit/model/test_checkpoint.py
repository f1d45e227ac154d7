"""Checkpoints in one file or in several, and broken ones."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from eaglebench.errors import CheckpointError
from eaglebench.model.checkpoint import read_tensors
from tests.checkpoints import make_head_tensors


def write_shards(folder: Path) -> dict[str, torch.Tensor]:
    """A head's tensors in two files with an index."""
    tensors = make_head_tensors()
    names = sorted(tensors)
    files = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    weight_map = {name: files[number % 2] for number, name in enumerate(names)}
    for file in files:
        save_file({n: tensors[n] for n in names if weight_map[n] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return tensors


def test_shards_are_read_as_one(tmp_path: Path) -> None:
    """Every tensor of every file, once."""
    expected = write_shards(tmp_path)

    read = read_tensors(tmp_path)

    assert set(read) == set(expected)
    assert all(torch.equal(read[name], expected[name]) for name in expected)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    """Before anything is computed."""
    write_shards(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()

    with pytest.raises(CheckpointError, match="model-00002-of-00002"):
        read_tensors(tmp_path)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    """With its name."""
    save_file(make_head_tensors(), tmp_path / "model.safetensors")
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[: len(whole) // 2])

    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        read_tensors(tmp_path)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    """It says which files were looked for."""
    with pytest.raises(CheckpointError, match="holds no checkpoint") as caught:
        read_tensors(tmp_path)
    assert "model.safetensors" in str(caught.value.hint)
