"""`heads inspect` and `heads convert` on the heads that ship with the package."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.assets.cache import packaged_root
from eaglebench.cli.main import main
from tests.checkpoints import (
    make_eagle1_tensors,
    make_head_tensors,
    publish_eagle1,
    publish_eagle3,
)


def invoke(*args: str) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    result = CliRunner().invoke(main, ["heads", *args], env={"COLUMNS": "140"})
    return result.exit_code, result.stdout, result.stderr


def test_inspect_shows_what_was_recognised() -> None:
    """Kind, format, layers before and after, vocabulary, each tensor, what is borrowed."""
    status, out, err = invoke("inspect", "smollm2-135m-eagle3")

    assert (status, err) == (0, "")
    assert words_after(out, "kind") == "EAGLE-3"
    assert words_after(out, "format") == "sglang, as written by SGLang, vLLM, TorchSpec, ModelOpt"
    assert words_after(out, "features") == "states 2, 15, 27 of the target"
    assert "at the top level of config.json, so as vllm counts" in out
    assert words_after(out, "vocabulary") == "8192 of the target's 49152 ids, by d2t"
    assert words_after(out, "names") == "midlayer.* is layers.0.* here"
    assert "576 x 1728" in out
    assert "not in the file: the target's embeddings" in out
    assert "\x1b" not in out


def words_after(out: str, name: str) -> str:
    """What one line of the summary says."""
    (line,) = [line for line in out.splitlines() if line.startswith(f"{name} ")]
    return line.removeprefix(name).strip()


@pytest.mark.parametrize("columns", ["60", "80", "140"])
def test_names_of_tensors_and_paths_are_never_cut(columns: str, tmp_path: Path) -> None:
    """They are what one looks for; the other column folds, and so does a long path."""
    folder = tmp_path / ("long" * 20) / "head"
    shutil.copytree(packaged_root() / "tiny-eagle3", folder)
    result = CliRunner().invoke(main, ["heads", "inspect", str(folder)], env={"COLUMNS": columns})

    assert "midlayer.post_attention_layernorm.weight " in result.stdout
    assert "\u2026" not in result.stdout


def test_inspect_as_json() -> None:
    """The same, for programs."""
    _, out, _ = invoke("inspect", "tiny-eagle3", "--model", "tiny", "--format", "json")

    report = json.loads(out)
    tensors = {tensor["place"]: tensor for tensor in report["tensors"]}
    assert (report["algorithm"], report["form"]) == ("EAGLE3", "sglang")
    assert report["aux_written"] == report["aux_layer_ids"] == [1, 2, 3]
    assert (report["vocab_size"], report["draft_vocab_size"]) == (260, 96)
    assert tensors["fc.weight"]["shape"] == [96, 288]
    assert report["borrowed"] == {"embed_tokens.weight": "the target's embeddings"}
    assert report["fields"]["rope_theta"] == 10000.0


def test_given_layers_overrule_the_config(tmp_path: Path) -> None:
    """Both are shown; a conversion writes the given ones."""
    layers = ("--aux-layer-ids", "0,1,3")
    status, out, _ = invoke("inspect", "tiny-eagle3", "--model", "tiny", *layers)
    assert status == 0
    assert words_after(out, "features") == "states 0, 1, 3 of the target"
    assert "config.json says 1, 2, 3" in out
    assert "given with --aux-layer-ids" in out
    _, out, _ = invoke(
        "convert", "tiny-eagle3", str(tmp_path / "out"), "--to", "speculators", *layers
    )
    assert words_after(out, "features") == "states 0, 1, 3 of the target"


def test_eagle1_and_its_target(tmp_path: Path) -> None:
    """What an EAGLE-1 head borrows, and that it does not fit another target."""
    folder = str(publish_eagle1(tmp_path, "speculators", make_eagle1_tensors("fc.bias")))

    status, out, _ = invoke("inspect", folder)
    assert status == 0
    assert words_after(out, "kind").startswith("EAGLE-1 or EAGLE-2")
    assert words_after(out, "format") == "speculators, as written by speculators"
    assert "not in the file: the target's lm_head" in out
    assert "known with --model" in out
    status, _, err = invoke("inspect", folder, "--model", "tiny")
    assert status == 2
    assert "the head is 32 wide, the target 96" in err


def test_convert_writes_and_shows(tmp_path: Path) -> None:
    """The new folder is read back; the verifier is named as the user did."""
    status, out, err = invoke(
        "convert", "tiny-eagle3", str(tmp_path / "out"), "--to", "speculators", "--model", "tiny"
    )

    assert (status, err) == (0, "")
    assert words_after(out, "format") == "speculators, as written by speculators"
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["speculators_config"]["verifier"]["name_or_path"] == "tiny"


def test_convert_names_versions_that_would_run_another_head(tmp_path: Path) -> None:
    """Where the user looks: at the end."""
    tensors = make_head_tensors("fc_norm")
    folder = publish_eagle3(tmp_path / "a", "vllm", tensors, fc_norm=True)

    status, out, _ = invoke("convert", str(folder), str(tmp_path / "b"), "--to", "sglang")

    assert status == 0
    assert out.splitlines()[-1].startswith("warning: SGLang 0.5.4 ignores fc_norm")


def test_convert_says_that_the_verifier_has_no_name(tmp_path: Path) -> None:
    """On standard error, where it does not disturb JSON."""
    out_folder = str(tmp_path / "out")
    status, out, err = invoke(
        "convert", "tiny-eagle3", out_folder, "--to", "speculators", "--format", "json"
    )

    assert status == 0
    assert json.loads(out)["path"] == out_folder
    assert "names no verifier" in err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("inspect", "nowhere"), "no asset, folder or Hub id 'nowhere'"),
        (("inspect", "tiny"), "a whole model of 4 layers"),
        (("convert", "tiny-eagle3", "out", "--to", "safeailab", "--model", "tiny"), "can't say"),
    ],
)
def test_what_can_not_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], words: str
) -> None:
    """Status 2, a message, and nothing on standard output."""
    monkeypatch.chdir(tmp_path)

    status, out, err = invoke(*args)

    assert (status, out) == (2, "")
    assert words in err
    assert not (tmp_path / "out").exists()


def test_inspect_shows_what_is_said_otherwise() -> None:
    """The head as it would be computed, and what of it does not stand in its file."""
    changes = ("--draft-config", "sliding_window=16", "--draft-config", "partial_rotary_factor=0.5")
    usual = invoke("inspect", "tiny-eagle3")[1]

    status, out, _ = invoke("inspect", "tiny-eagle3", *changes)

    assert status == 0
    assert words_after(usual, "window") == "none"
    assert words_after(usual, "rotary") == "24 of 24 dimensions of a head, type default, base 10000"
    assert words_after(out, "window") == "the last 16 positions"
    assert words_after(out, "rotary").startswith("12 of 24 dimensions")
    assert words_after(out, "said otherwise") == "sliding_window 16, partial_rotary_factor 0.5"


def test_convert_writes_what_is_said_otherwise(tmp_path: Path) -> None:
    """Values are JSON, words stand as they are; one that a format can't say is refused."""
    changes = ("--draft-config", "rope_theta=5e5", "--draft-config", "hidden_act=gelu")
    out_folder = tmp_path / "out"

    status, _, err = invoke("convert", "tiny-eagle3", str(out_folder), "--to", "sglang", *changes)

    assert status == 0, err
    config = json.loads((out_folder / "config.json").read_text())
    assert (config["rope_theta"], config["hidden_act"]) == (500000.0, "gelu")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("colour=red",), "colour: not a field of a head's config that is read here"),
        (("rope_theta=5", "rope_theta=6"), "says two things of rope_theta: 5 and 6"),
        (("rope_theta=NaN",), "rope_theta is 'NaN'"),
        (("rope_theta",), "not of the form key=value"),
    ],
)
def test_what_can_not_be_said_otherwise(given: tuple[str, ...], words: str) -> None:
    """Status 2, and what is known."""
    changes = [part for text in given for part in ("--draft-config", text)]
    status, out, err = invoke("inspect", "tiny-eagle3", *changes)

    assert (status, out) == (2, "")
    assert words in err
