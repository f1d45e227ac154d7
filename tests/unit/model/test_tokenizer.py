"""Text to ids and back, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest

from eaglebench.errors import CheckpointError, UsageError
from eaglebench.model.tokenizer import REPLACEMENT, HubTokenizer, check_same_tokenizer
from tests.engines import TINY


def copy_tokenizer(folder: Path, **config: object) -> Path:
    """The tiny tokenizer with other settings."""
    folder.mkdir()
    shutil.copy(TINY / "tokenizer.json", folder)
    settings = json.loads((TINY / "tokenizer_config.json").read_text()) | config
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def test_bytes_go_there_and_back() -> None:
    """Also those that are no whole character."""
    tokenizer = HubTokenizer.load(TINY)
    text = "Grüße, 東京!\n"

    assert tokenizer.encode(text) == list(text.encode())
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_an_id_past_the_tokenizer_decodes_to_the_replacement() -> None:
    """An lm_head padded beyond the vocabulary can choose one; the run goes on."""
    tokenizer = HubTokenizer.load(TINY)

    assert tokenizer.decode([104, 105, 5000]) == f"hi{REPLACEMENT}"


def test_chat_is_rendered_by_the_template() -> None:
    """Ready for the assistant's turn."""
    ids = HubTokenizer.load(TINY).render_chat([{"role": "user", "content": "hi"}])

    assert ids == [256, 258, 104, 105, 259]


def test_a_template_that_refuses_says_what_to_try(tmp_path: Path) -> None:
    """A system role that the template does not know."""
    template = "{{ raise_exception('no system role') }}"
    tokenizer = HubTokenizer.load(copy_tokenizer(tmp_path / "t", chat_template=template))

    with pytest.raises(UsageError, match="no system role") as caught:
        tokenizer.render_chat([{"role": "system", "content": "x"}])
    assert "--system-prompt" in str(caught.value.hint)


def test_without_a_template_raw_text_is_offered(tmp_path: Path) -> None:
    """Rather than a made-up one."""
    tokenizer = HubTokenizer.load(copy_tokenizer(tmp_path / "t", chat_template=None))

    with pytest.raises(UsageError, match="no chat template") as caught:
        tokenizer.render_chat([{"role": "user", "content": "x"}])
    assert caught.value.hint == "use --prompt-format raw"


def test_no_tokenizer_is_a_usage_error(tmp_path: Path) -> None:
    """With the folder in the message."""
    with pytest.raises(UsageError, match="can't load a tokenizer"):
        HubTokenizer.load(tmp_path)


def test_a_head_with_another_tokenizer_is_refused(tmp_path: Path) -> None:
    """Both sizes and a token that moved are named; without a file there is nothing to compare."""
    other = copy_tokenizer(tmp_path / "other")
    check_same_tokenizer(TINY, other)
    check_same_tokenizer(TINY, tmp_path)
    document = json.loads((other / "tokenizer.json").read_text())
    vocab = document["model"]["vocab"]
    vocab["a"], vocab["b"] = vocab["b"], vocab["a"]
    (other / "tokenizer.json").write_text(json.dumps(document))

    with pytest.raises(CheckpointError, match="260 tokens, the target 260, and 2 have other ids"):
        check_same_tokenizer(TINY, other)
