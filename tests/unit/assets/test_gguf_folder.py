"""Conversion equals what `transformers` makes of the same file."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from eaglebench.assets.gguf_folder import convert_gguf
from eaglebench.errors import AssetError
from tests.unit.assets.wheels import TOKENS, make_gguf


def no_progress(_stage: str, _done: int, _total: int) -> None:
    """Drop an event."""


def make_folder(tmp_path: Path) -> Path:
    """A converted folder."""
    folder = tmp_path / "converted"
    convert_gguf(make_gguf(tmp_path / "small.gguf"), folder, no_progress)
    return folder


def test_weights_equal_those_of_transformers(tmp_path: Path) -> None:
    """Every tensor is bit for bit the one `transformers` dequantises."""
    folder = make_folder(tmp_path)
    expected = AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file="small.gguf", dtype=torch.float32
    ).state_dict()

    actual = load_file(folder / "model.safetensors")

    assert set(actual) == set(expected) - {"lm_head.weight"}
    assert all(torch.equal(expected[name], actual[name]) for name in actual)


def test_folder_loads_like_the_file(tmp_path: Path) -> None:
    """A model loaded from the folder gives the logits of one loaded from the GGUF file."""
    folder = make_folder(tmp_path)
    ids = torch.arange(len(TOKENS))[None]
    whole = AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file="small.gguf", dtype=torch.float32
    )

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)

    with torch.no_grad():
        assert torch.equal(whole(ids).logits, model(ids).logits)
    assert model.generation_config.eos_token_id == TOKENS.index("<|im_end|>")


def test_tokenizer_takes_digits_one_by_one(tmp_path: Path) -> None:
    """Merges, single digits, marks and the chat template survive the conversion."""
    tokenizer = AutoTokenizer.from_pretrained(make_folder(tmp_path))

    ids = tokenizer.apply_chat_template([{"content": "ab12 a\n"}], return_dict=False)

    names = ["<|im_start|>", "ab", "1", "2", "Ġ", "a", "Ċ", "<|im_end|>"]
    assert [TOKENS.index(name) for name in names] == ids
    assert tokenizer.decode(ids, skip_special_tokens=True) == "ab12 a\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": "gemma2"}, "general.architecture is 'gemma2'; only 'llama' is known"),
        ({"pre": "llama-bpe"}, "tokenizer.ggml.pre is 'llama-bpe'"),
        ({"extra_tensor": "blk.0.strange.weight"}, "blk.0.strange.weight"),
    ],
)
def test_what_is_not_known_is_refused(tmp_path: Path, change: dict[str, str], message: str) -> None:
    """Another architecture or tokenizer, or a tensor without a place is refused by name."""
    source = make_gguf(tmp_path / "small.gguf", **change)

    with pytest.raises(AssetError, match=message):
        convert_gguf(source, tmp_path / "converted", no_progress)


@pytest.mark.parametrize("length", [0, 100, 700])
def test_truncated_file_is_refused(tmp_path: Path, length: int) -> None:
    """A file that ends too early is a plain error, not a crash."""
    source = make_gguf(tmp_path / "small.gguf")
    source.write_bytes(source.read_bytes()[:length])

    with pytest.raises(AssetError, match=r"small\.gguf"):
        convert_gguf(source, tmp_path / "converted", no_progress)
