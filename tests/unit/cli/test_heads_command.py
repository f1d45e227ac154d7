"""`heads inspect` and `heads convert` on the heads that ship with the package."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from eaglebench.cli.main import main
from tests.checkpoints import make_eagle1_tensors, publish_eagle1


def invoke(*args: str) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    result = CliRunner().invoke(main, ["heads", *args], env={"COLUMNS": "140"})
    return result.exit_code, result.stdout, result.stderr


def test_inspect_shows_what_was_recognised() -> None:
    """Kind, format, layers before and after, vocabulary, each tensor, what is borrowed."""
    status, out, err = invoke("inspect", "smollm2-135m-eagle3")

    assert (status, err) == (0, "")
    assert "EAGLE3, format safeailab" in out
    assert "2, 15, 27 written (as vllm counts" in out
    assert "8192 of 49152 ids, by d2t" in out
    assert "midlayer.self_attn.q_proj.weight" in out
    assert "576 x 1728" in out
    assert "the target's embeddings" in out
    assert "\x1b" not in out


def test_inspect_as_json() -> None:
    """The same, for programs."""
    _, out, _ = invoke("inspect", "tiny-eagle3", "--model", "tiny", "--format", "json")

    report = json.loads(out)
    tensors = {tensor["place"]: tensor for tensor in report["tensors"]}
    assert (report["algorithm"], report["form"]) == ("EAGLE3", "safeailab")
    assert report["aux_written"] == report["aux_layer_ids"] == [1, 2, 3]
    assert (report["vocab_size"], report["draft_vocab_size"]) == (260, 96)
    assert tensors["fc.weight"]["shape"] == [96, 288]
    assert report["borrowed"] == {"embed_tokens.weight": "the target's embeddings"}
    assert report["fields"]["rope_theta"] == 10000.0


def test_eagle1_and_its_target(tmp_path: Path) -> None:
    """What an EAGLE-1 head borrows, and that it does not fit another target."""
    folder = str(publish_eagle1(tmp_path, "speculators", make_eagle1_tensors("fc.bias")))

    status, out, _ = invoke("inspect", folder)
    assert status == 0
    assert "EAGLE (1 or 2), format speculators" in out
    assert "the target's lm_head" in out
    assert "known with --model" in out
    status, _, err = invoke("inspect", folder, "--model", "tiny")
    assert status == 2
    assert "vocabulary of 256, the target has 260" in err


def test_convert_writes_and_shows(tmp_path: Path) -> None:
    """The new folder is read back; the verifier is named as the user did."""
    status, out, err = invoke(
        "convert", "tiny-eagle3", str(tmp_path / "out"), "--to", "speculators", "--model", "tiny"
    )

    assert (status, err) == (0, "")
    assert "format speculators" in out
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["speculators_config"]["verifier"]["name_or_path"] == "tiny"


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
        (("inspect", "tiny"), "4 layers; a head has 1"),
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
