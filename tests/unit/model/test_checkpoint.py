"""Checkpoints in one file or in several, and broken ones."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

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


# --- files that are no plain checkpoint -------------------------------------------------------


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        """What a pickle runs."""
        return os.mkdir, (str(self.marker),)


def test_a_pickle_runs_nothing(tmp_path: Path) -> None:
    """A .bin with code in it is refused, and safetensors beside it come first."""
    marker, folder = tmp_path / "marker", tmp_path / "head"
    folder.mkdir()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(marker), protocol=2))
    with pytest.raises(CheckpointError) as caught:
        read_tensors(folder)
    save_file(make_head_tensors(), folder / "model.safetensors")

    assert set(read_tensors(folder)) == set(make_head_tensors())
    assert "without running code" in str(caught.value.hint)
    assert not marker.exists()


def test_a_plain_pickle_is_read(tmp_path: Path) -> None:
    """As SafeAILab publishes its heads."""
    torch.save(make_head_tensors(), tmp_path / "pytorch_model.bin")

    assert set(read_tensors(tmp_path)) == set(make_head_tensors())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"state_dict": {"fc.weight": torch.ones(2)}}, "state_dict is a dict"),
        ([torch.ones(2)], "holds a list"),
        (torch.ones(2), "holds a Tensor"),
    ],
)
def test_a_pickle_of_something_else_is_refused(
    tmp_path: Path, content: object, message: str
) -> None:
    """With what it holds."""
    torch.save(content, tmp_path / "pytorch_model.bin")

    with pytest.raises(CheckpointError, match=message):
        read_tensors(tmp_path)


def test_a_pointer_of_git_lfs_is_recognised(tmp_path: Path) -> None:
    """A clone without git lfs leaves it in the place of the file."""
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")

    with pytest.raises(CheckpointError) as caught:
        read_tensors(tmp_path)
    assert "git lfs pull" in str(caught.value.hint)


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"fc.weight": 1}}']
)
def test_a_broken_index_is_refused(tmp_path: Path, text: str) -> None:
    """By its name."""
    (tmp_path / "model.safetensors.index.json").write_text(text)

    with pytest.raises(CheckpointError, match=r"model\.safetensors\.index\.json is not the index"):
        read_tensors(tmp_path)


@pytest.mark.parametrize("name", ["../other/model.safetensors", "/model.safetensors", "a.bin"])
def test_an_index_names_files_beside_it_only(tmp_path: Path, name: str) -> None:
    """A downloaded file does not choose what else is opened."""
    index = json.dumps({"weight_map": {"fc.weight": name}})
    (tmp_path / "model.safetensors.index.json").write_text(index)

    with pytest.raises(CheckpointError, match="file beside it"):
        read_tensors(tmp_path)


def test_a_tensor_that_no_shard_holds_is_named(tmp_path: Path) -> None:
    """Before it is taken for one that the head does not have."""
    save_file({"fc.weight": torch.ones(2)}, tmp_path / "model.safetensors")
    names = dict.fromkeys(("fc.weight", "fc.bias"), "model.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))

    with pytest.raises(CheckpointError, match=r"no file holds: fc\.bias"):
        read_tensors(tmp_path)
