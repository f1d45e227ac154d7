"""Heads and targets that are not the usual pair, from the command line to table and record."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from eaglebench.cli.main import main
from tests.engines import TINY, TINY_HEAD
from tests.families import make_family

PADDED = 264
"""Rows of a target whose tokenizer knows 260."""


def run_tiny(folder: Path, *args: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, the record of the run if there is one, and everything that was printed."""
    small = ("-n", "1", "--max-new-tokens", "24", "--dtype", "float64", "--warmup", "0")
    command = ["run", "tiny", *small, "-o", str(folder), "--progress", "none", *args]
    result = CliRunner().invoke(main, command, env={"COLUMNS": "400"})
    records = list(folder.glob("runs/*/run.json"))
    return result.exit_code, json.loads(records[0].read_text()) if records else {}, result.output


def write_short_sighted_head(folder: Path, max_positions: int) -> Path:
    """The tiny head, made for so many positions."""
    shutil.copytree(TINY_HEAD, folder)
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] = max_positions
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def write_padded_target(folder: Path) -> Path:
    """The tiny target with padding rows in its lm_head, one of which wins every choice."""
    model = AutoModelForCausalLM.from_pretrained(TINY, tie_word_embeddings=False)
    with torch.no_grad():
        model.resize_token_embeddings(PADDED, mean_resizing=False)
        states = model(torch.tensor([[256, 258, 104, 105, 259]]), output_hidden_states=True)
        model.lm_head.weight[PADDED - 1] = 1000 * states.hidden_states[-1][0, -1]
    model.config.tie_word_embeddings = False
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(TINY / name, folder)
    return folder


def write_strict_target(folder: Path) -> Path:
    """The tiny target with a template that knows no system role."""
    shutil.copytree(TINY, folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    refusal = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    )
    settings["chat_template"] = refusal + settings["chat_template"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def test_a_head_whose_positions_end_says_so(tmp_path: Path) -> None:
    """The run goes on without drafts; the notes say from where, and how many steps it touched."""
    head = write_short_sighted_head(tmp_path / "head", 64)

    status, record, out = run_tiny(tmp_path, "--draft-model", str(head))

    assert status == 0, out
    assert record["models"]["draft_positions"] == 64
    assert "made for 64 positions and proposes nothing past them: " in out


def test_a_head_that_sees_far_enough_is_silent(tmp_path: Path) -> None:
    """No note without a reason."""
    status, record, out = run_tiny(tmp_path)

    assert status == 0, out
    assert record["models"]["draft_positions"] == 4096
    assert "proposes nothing past" not in out


def accepted_in(folder: Path) -> int:
    """Drafts that the no-cache arm of a run accepted."""
    (path,) = folder.glob("runs/*/requests.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return sum(line["counters"]["accepted"] for line in lines if line["arm"] == "no-cache")


def test_given_layers_feed_the_head(tmp_path: Path) -> None:
    """The record holds the ids and where they come from; other features accept less."""
    _, usual, _ = run_tiny(tmp_path / "a", "--arms", "no-cache")

    status, record, out = run_tiny(tmp_path / "b", "--arms", "no-cache", "--aux-layer-ids", "0,1,2")

    assert status == 0, out
    assert usual["models"]["aux_layer_ids"] == [1, 2, 3]
    assert "so as vllm counts" in usual["models"]["aux_counting"]
    assert record["models"]["aux_layer_ids"] == record["config"]["aux_layer_ids"] == [0, 1, 2]
    assert "--aux-layer-ids" in record["models"]["aux_counting"]
    assert 2 * accepted_in(tmp_path / "b") < accepted_in(tmp_path / "a")


def test_layers_the_target_does_not_have_are_refused(tmp_path: Path) -> None:
    """Status 2, and what there is."""
    status, record, out = run_tiny(tmp_path, "--aux-layer-ids", "1,2,9")

    assert (status, record) == (2, {})
    assert "auxiliary layer 9 asks for a state that the target does not have" in out


def test_ids_without_text_are_counted(tmp_path: Path) -> None:
    """A target padded past its tokenizer chooses such an id; the run goes on and the notes say so."""
    target = write_padded_target(tmp_path / "target")

    status, record, out = run_tiny(
        tmp_path, "--model", str(target), "--draft-model", "tiny-eagle3", "--ignore-eos"
    )

    assert status == 0, out
    assert (record["models"]["vocab_size"], record["models"]["tokenizer_size"]) == (264, 260)
    assert "delivered tokens have no text: the model knows 264 ids, its tokenizer 260" in out
    assert "made for a vocabulary of 260, the target has 264" in out


@pytest.mark.parametrize(("args", "expected"), [((), 0), (("--system-prompt", "Be brief."), 2)])
def test_a_template_without_a_system_role(
    tmp_path: Path, args: tuple[str, ...], expected: int
) -> None:
    """Runs without a system prompt, and is refused with one before anything is computed."""
    target = write_strict_target(tmp_path / "target")

    status, record, out = run_tiny(
        tmp_path, "--model", str(target), "--draft-model", "tiny-eagle3", *args
    )

    assert status == expected, out
    assert ("refuses this conversation: no system" in out) == bool(args)
    assert ("leave out --system-prompt" in out) == bool(args)
    assert record["config"]["system_prompt"] == (args[1] if args else None)


def test_a_config_said_otherwise_is_another_head(tmp_path: Path) -> None:
    """It is computed, recorded, and no baseline of the head as it stands is compared with it."""
    _, usual, _ = run_tiny(tmp_path / "a", "--arms", "no-cache")
    save = ["baseline", "save", "usual", "-o", str(tmp_path / "a"), "--reason", "first"]
    saved = CliRunner().invoke(main, [*save, "--allow-dirty"])
    changes = ("--draft-config", "rope_theta=300", "--draft-config", "sliding_window=4")

    status, record, out = run_tiny(tmp_path / "b", "--arms", "no-cache", *changes)
    baseline = tmp_path / "a" / "baselines" / "usual.jsonl"
    gate = ["gate", "--baseline", str(baseline), "-o", str(tmp_path / "b")]
    judged = CliRunner().invoke(main, gate, env={"COLUMNS": "400"})

    assert (saved.exit_code, status) == (0, 0), saved.output + out
    assert usual["models"]["draft_config"] is None
    assert record["config"]["draft_config"] == {"rope_theta": 300, "sliding_window": 4}
    assert record["models"]["draft_config"] == record["config"]["draft_config"]
    assert "said otherwise (--draft-config): rope_theta 300, sliding_window 4" in out
    digests = [each["models"]["draft_config_sha256"] for each in (usual, record)]
    assert digests[0] != digests[1]
    assert 2 * accepted_in(tmp_path / "b") < accepted_in(tmp_path / "a")
    assert judged.exit_code == 5, judged.output
    assert "draft_config" in judged.output


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--algorithm", "NONE"), "with --algorithm NONE there is no head"),
        (("--num-steps", "0"), "nothing is drafted"),
    ],
)
def test_a_config_that_no_head_reads_is_refused(
    tmp_path: Path, args: tuple[str, ...], words: str
) -> None:
    """Status 2 before anything is loaded: an option without effect would be a lie."""
    status, record, out = run_tiny(tmp_path, "--draft-config", "rope_theta=300", *args)

    assert (status, record) == (2, {})
    assert words in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "missing: model.norm.weight 96"),
        (b"", "(0 bytes) can't be read"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ],
)
def test_a_target_that_is_not_whole_is_refused(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    """With exit status 2 and what is wrong, and no run is begun with random weights."""
    target = tmp_path / "target"
    shutil.copytree(TINY, target)
    path = target / "model.safetensors"
    tensors = load_file(path)
    tensors.pop("model.norm.weight")
    save_file(tensors, path, metadata={"format": "pt"})
    if content is not None:
        path.write_bytes(content)

    status, record, out = run_tiny(tmp_path, "--model", str(target), "--draft-model", "tiny-eagle3")

    assert status == 2
    assert message in out
    assert "Traceback" not in out
    assert record.get("status") not in {"done", "running"}


def test_a_family_that_cant_be_computed_is_refused(tmp_path: Path) -> None:
    """By name, from the command line as well."""
    target = tmp_path / "target"
    make_family("jamba", vocab_size=260).save_pretrained(target)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(TINY / name, target)

    status, _, out = run_tiny(tmp_path, "--model", str(target), "--algorithm", "none")

    assert status == 2
    assert "linear_attention" in out
    assert "jamba" in out
    assert "Traceback" not in out
