"""A target whose weights are not whole is refused by name; what families leave out is not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from eaglebench.errors import UsageError
from eaglebench.model.target import Target
from tests.checkpoints import make_model
from tests.engines import TINY
from tests.families import make_family

CPU = torch.device("cpu")
NORM = "model.norm.weight"
UP = "model.layers.0.mlp.up_proj.weight"
WEIGHTS = "model.safetensors"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
INDEX = "model.safetensors.index.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the tiny target."""
    copy = tmp_path / "target"
    shutil.copytree(TINY, copy)
    return copy


def load(folder: Path, dtype: torch.dtype = torch.float32) -> Target:
    """The target in a folder."""
    return Target.load(folder, dtype=dtype, device=CPU)


def change(folder: Path, edit: Callable[[dict[str, Tensor]], Any]) -> None:
    """Write the weights anew."""
    tensors = load_file(folder / WEIGHTS)
    edit(tensors)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def change_config(folder: Path, **fields: Any) -> None:
    """Write the config anew."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def shard(folder: Path) -> dict[str, str]:
    """Two files and an index instead of one."""
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    places = {name: SHARDS[number % 2] for number, name in enumerate(sorted(tensors))}
    for file in SHARDS:
        held = {name: tensors[name] for name in tensors if places[name] == file}
        save_file(held, folder / file, metadata={"format": "pt"})
    write_index(folder, places)
    return places


def write_index(folder: Path, places: dict[str, str]) -> None:
    """The index of the shards."""
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))


def pickle_weights(folder: Path, wrap: Callable[[dict[str, Tensor]], Any] = dict) -> None:
    """A `.bin` instead of the safetensors file."""
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    torch.save(wrap(tensors), folder / "pytorch_model.bin")


def logits(target: Target) -> Tensor:
    """Of a few states, enough to tell weights apart."""
    states = torch.linspace(-1, 1, 3 * target.hidden_size).view(3, -1)
    return target.lm_head_logits(states)


# --- what must not load -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.pop(NORM), rf"missing: {NORM} 96"),
        (lambda t: t.pop("model.embed_tokens.weight"), "missing: .*embed_tokens.weight 260x96"),
        (lambda t: t.update({"extra.weight": torch.ones(2)}), "without a place: extra.weight"),
        (
            lambda t: t.update({"model.layers.4.mlp.up_proj.weight": torch.ones(224, 96)}),
            r"without a place: model\.layers\.4",
        ),
        (lambda t: t.update({NORM: torch.ones(95)}), rf"of another shape: {NORM} 95, expected 96"),
        (lambda t: t.update({UP: t[UP].t().contiguous()}), "96x224, expected 224x96"),
        (lambda t: t.update({NORM: t[NORM].to(torch.int8)}), f"{NORM} holds numbers of type I8"),
        (lambda t: t.update({UP: t[UP].to(torch.float8_e4m3fn)}), "type F8_E4M3"),
        (lambda t: t[NORM].fill_(float("nan")), f"NaN or infinite numbers in float32: {NORM}"),
        (lambda t: t[UP][3].fill_(float("inf")), f"NaN or infinite .*: {UP}"),
        (
            lambda t: [t.update({f"x.{name}": t.pop(name)}) for name in list(t)],
            r"missing: .* and \d+ more; without a place: x\.model.* and \d+ more",
        ),
    ],
)
def test_tensors_have_to_be_those_of_the_config(
    folder: Path, edit: Callable[[dict[str, Tensor]], Any], message: str
) -> None:
    """Else weights would be random, or another model's."""
    change(folder, edit)

    with pytest.raises(UsageError, match=message):
        load(folder)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_hidden_layers": 5}, r"missing: model\.layers\.4"),
        ({"num_hidden_layers": 3}, r"without a place: model\.layers\.3"),
        ({"attention_bias": True}, r"missing: .*proj\.bias"),
        ({"vocab_size": 258}, "260x96, expected 258x96"),
        ({"tie_word_embeddings": False}, r"missing: lm_head\.weight 260x96"),
        ({"hidden_size": "wide"}, r"hidden_size is 'wide'; expected a whole number above 0"),
        ({"num_hidden_layers": -1}, "num_hidden_layers is -1"),
        ({"num_attention_heads": [4, 0]}, r"num_attention_heads is \[4, 0\]"),
        ({"torch_dtype": "silu"}, "torch_dtype is 'silu'; expected the name of a dtype"),
        ({"auto_map": 3}, "auto_map is 3; expected fields by name"),
        ({"rope_scaling": [1]}, "rope_scaling"),
        ({"layer_types": "full_attention"}, "layer_types .* expected a list of names"),
        ({"text_config": {"vocab_size": True}}, "vocab_size is True"),
        ({"model_type": "nosuch"}, "nosuch"),
        ({"quantization_config": {"quant_method": "nosuch"}}, "nosuch"),
    ],
)
def test_a_config_has_to_be_that_of_the_tensors(
    folder: Path, fields: dict[str, Any], message: str
) -> None:
    """The same fault from the other side."""
    change_config(folder, **fields)

    with pytest.raises(UsageError, match=message):
        load(folder)


@pytest.mark.parametrize("name", [WEIGHTS, "pytorch_model.bin"])
@pytest.mark.parametrize("kind", ["cut", "empty", "pointer", "text"])
def test_a_file_that_is_no_checkpoint_is_named(folder: Path, name: str, kind: str) -> None:
    """Cut in the middle, of no bytes, a pointer of large-file storage, or something else."""
    if name != WEIGHTS:
        pickle_weights(folder)
    path = folder / name
    whole = path.read_bytes()
    content = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 3\n",
        "text": b"<html>404</html>",
    }[kind]
    path.write_bytes(content)

    with pytest.raises(UsageError, match=str(folder)) as caught:
        load(folder)
    if kind == "pointer":
        assert "git lfs pull" in str(caught.value.hint)
    if (name, kind) == (WEIGHTS, "cut"):
        assert f"{len(content)} bytes; its header asks for {len(whole)}" in caught.value.message


@pytest.mark.parametrize(
    "wrap", [lambda t: {"state_dict": t}, lambda _: [1], lambda t: {**t, "epoch": torch.ones(1)}]
)
def test_a_pickle_of_something_else_is_refused(folder: Path, wrap: Callable[[Any], Any]) -> None:
    """Its tensors are accounted for as well."""
    pickle_weights(folder, wrap)

    with pytest.raises(UsageError, match=str(folder)):
        load(folder)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda p: p | {"ghost.weight": SHARDS[0]}, "no file holds: ghost.weight"),
        (lambda p: p | {NORM: "model-00009-of-00002.safetensors"}, "which is not there"),
        (lambda p: p | {NORM: "../model.safetensors"}, "file beside it"),
        (lambda _: {}, "names no tensors"),
        (list, "not the index"),
    ],
)
def test_an_index_has_to_tell_the_truth(
    folder: Path, edit: Callable[[dict[str, str]], Any], message: str
) -> None:
    """Of files and of tensors, needed or not."""
    write_index(folder, edit(shard(folder)))

    with pytest.raises(UsageError, match=message):
        load(folder)


def test_weights_that_the_dtype_cant_hold_are_refused(folder: Path) -> None:
    """float16 ends at 65504; the message says in which dtype."""
    change(folder, lambda t: t[UP].mul_(1e9))
    load(folder)

    with pytest.raises(UsageError, match=rf"infinite numbers in float16: {UP}"):
        load(folder, torch.float16)


# --- what must load ---------------------------------------------------------------------------


def test_one_file_several_and_a_pickle_are_one_model(folder: Path, tmp_path: Path) -> None:
    """With the same logits, and with a mark in front of the index."""
    shards, pickled = tmp_path / "shards", tmp_path / "pickled"
    shutil.copytree(folder, shards)
    shutil.copytree(folder, pickled)
    places = shard(shards)
    (shards / INDEX).write_text(
        f"\ufeff{json.dumps({'metadata': {}, 'weight_map': places})}", encoding="utf-8"
    )
    pickle_weights(pickled)

    found = [logits(load(each)) for each in (folder, shards, pickled)]

    assert float(found[0].std()) > 0
    assert all(torch.equal(each, found[0]) for each in found)


def test_what_a_family_leaves_out_or_renames_loads(folder: Path, tmp_path: Path) -> None:
    """Tied heads, computed buffers of old files, names without `model.`, experts one by one."""
    expected = logits(load(folder))
    change(
        folder, lambda t: t.update({"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(12)})
    )
    assert torch.equal(logits(load(folder)), expected)

    change(folder, lambda t: [t.update({n.removeprefix("model."): t.pop(n)}) for n in list(t)])
    assert torch.equal(logits(load(folder)), expected)

    for kind in ("mixtral", "qwen3_moe", "gpt_oss", "gemma2", "granite"):
        model = make_family(kind)
        model.save_pretrained(tmp_path / kind)
        ours = logits(load(tmp_path / kind))
        assert torch.allclose(ours, logits(Target(model)), atol=1e-6)


def test_experts_are_accounted_for(tmp_path: Path) -> None:
    """They are stacked while they are loaded; one that is gone is missed all the same."""
    make_family("mixtral").save_pretrained(tmp_path)
    tensors = load_file(tmp_path / WEIGHTS)
    (one,) = [n for n in sorted(tensors) if "layers.1" in n and "experts.2.w1" in n] or [""]
    assert one, "the file names its experts one by one"
    change(tmp_path, lambda t: t.pop(one))

    with pytest.raises(UsageError, match=str(tmp_path)):
        load(tmp_path)


def test_a_head_that_is_not_tied_is_read(tmp_path: Path) -> None:
    """And not replaced by the embeddings."""
    model = make_model(tie_word_embeddings=False)
    model.save_pretrained(tmp_path)

    target = load(tmp_path)

    assert torch.equal(target.model.get_output_embeddings().weight, model.lm_head.weight)
    assert not torch.equal(target.embedding.weight, model.lm_head.weight)


# --- JSON files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
def test_a_byte_order_mark_is_passed_over(folder: Path, name: str) -> None:
    """The same model; a marked generation config would lose its end tokens without a word."""
    generation = {"eos_token_id": [257, 33]}
    (folder / "generation_config.json").write_text(json.dumps(generation))
    path = folder / name
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    target = load(folder)

    assert target.stop_token_ids == (33, 257)
    assert torch.equal(logits(target), logits(load(TINY)))


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe{", b""])
def test_a_file_that_is_no_json_object_is_named(folder: Path, name: str, content: bytes) -> None:
    """With its path, even where `transformers` would go on without it."""
    (folder / name).write_bytes(content)

    with pytest.raises(UsageError, match=str(folder / name)):
        load(folder)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [(5, (5, 257)), ([5, 6], (5, 6, 257)), (None, (257,)), ([], (257,)), ((), (257,))],
)
def test_end_tokens_come_in_every_form(
    folder: Path, ids: object, expected: tuple[int, ...]
) -> None:
    """One, several or none, beside those of config.json."""
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ids}))

    assert load(folder).stop_token_ids == expected


@pytest.mark.parametrize("ids", ["</s>", ["</s>"], 2.5, [True], {"a": 1}, [[2]]])
def test_end_tokens_that_are_no_ids_are_refused(folder: Path, ids: object) -> None:
    """By the name of the file's field."""
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ids}))

    with pytest.raises(UsageError, match="eos_token_id"):
        load(folder)


def test_an_end_token_that_never_comes_is_told(folder: Path) -> None:
    """It is outside the vocabulary; the others count."""
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [257, 900, -1]}))

    target = load(folder)

    assert target.warnings == (
        "end token -1, 900 is outside the target's vocabulary of 260: it never comes",
    )
    assert 257 in target.stop_token_ids
