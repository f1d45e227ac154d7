"""From a name to a folder, and digests of what lies there."""

import os
from pathlib import Path

import pytest

from eaglebench.assets.cache import model_sha256, packaged_root
from eaglebench.assets.resolve import default_draft, resolve_model
from eaglebench.errors import AssetError


def ignore(_line: str) -> None:
    """Drop a notice."""


def test_packaged_head_is_found() -> None:
    """The packaged head is used where it lies."""
    path = resolve_model("smollm2-135m-eagle3", notice=ignore)

    assert path == packaged_root() / "smollm2-135m-eagle3"
    assert default_draft("smollm2-135m") == "smollm2-135m-eagle3"
    assert default_draft("some/model") is None


def test_folder_is_itself(tmp_path: Path) -> None:
    """An existing folder is taken as it is."""
    assert resolve_model(str(tmp_path), notice=ignore) == tmp_path


@pytest.mark.parametrize("name", ["no-such-asset", "./no/folder", "/no/folder"])
def test_what_is_nothing_is_refused_without_the_hub(name: str) -> None:
    """A name that is no asset, no folder and no Hub id is refused at once."""
    with pytest.raises(AssetError, match="there is no asset, folder or Hub id"):
        resolve_model(name, notice=ignore)


def test_file_is_refused(tmp_path: Path) -> None:
    """A GGUF file given as a model is answered with what to give instead."""
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")

    with pytest.raises(AssetError, match="is a file; expected a folder"):
        resolve_model(str(path), notice=ignore)


def test_questions_are_no_model() -> None:
    """An asset of questions given as a model is refused."""
    with pytest.raises(AssetError, match="is a set of questions"):
        resolve_model("mtbench-questions", notice=ignore)


def test_digest_follows_the_weights(tmp_path: Path) -> None:
    """The digest of a folder changes with its weights and with nothing else."""
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"one")
    first = model_sha256(tmp_path)
    (tmp_path / "README.md").write_text("text")

    assert model_sha256(tmp_path) == first
    weights.write_bytes(b"two")
    os.utime(weights, ns=(1, 1))
    assert model_sha256(tmp_path) != first
