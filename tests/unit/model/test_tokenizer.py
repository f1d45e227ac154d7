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


@pytest.mark.parametrize(
    ("template", "cause"),
    [
        ("{% for x in %}", "TemplateSyntaxError"),
        ("{{ messages + 5 }}", "TypeError"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ messages[9]['role'] }}", "no element 9"),
        ("{{ messages|nofilter }}", "nofilter"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "RecursionError"),
        (5, "TypeError"),
        ([{"name": "rag", "template": "x"}], "templates named rag and none named default"),
    ],
)
def test_a_template_that_fails_is_named(tmp_path: Path, template: object, cause: str) -> None:
    """With its file and its cause, whatever it stumbles over."""
    folder = copy_tokenizer(tmp_path / "t", chat_template=template)
    tokenizer = HubTokenizer.load(folder)

    with pytest.raises(UsageError) as caught:
        tokenizer.render_chat([{"role": "user", "content": "x"}])
    assert str(folder / "tokenizer_config.json") in caught.value.message
    assert cause in caught.value.message


def test_a_template_in_a_file_of_its_own_is_named(tmp_path: Path) -> None:
    """It goes before the one in tokenizer_config.json."""
    folder = copy_tokenizer(tmp_path / "t")
    (folder / "chat_template.jinja").write_text("{{ raise_exception('not today') }}")

    with pytest.raises(UsageError, match=r"chat_template\.jinja refuses .*not today"):
        HubTokenizer.load(folder).render_chat([{"role": "user", "content": "x"}])


def test_a_named_default_is_taken(tmp_path: Path) -> None:
    """Out of a list."""
    named = [{"name": "default", "template": "{{ messages[0].content }}!"}]
    tokenizer = HubTokenizer.load(copy_tokenizer(tmp_path / "t", chat_template=named))

    assert tokenizer.render_chat([{"role": "user", "content": "hi"}]) == list(b"hi!")


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
def test_a_byte_order_mark_is_passed_over(tmp_path: Path, name: str) -> None:
    """In every file; the same ids come out."""
    folder = copy_tokenizer(tmp_path / "t")
    template = json.loads((folder / "tokenizer_config.json").read_text())["chat_template"]
    (folder / "chat_template.jinja").write_text(template)
    path = folder / name
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    ids = HubTokenizer.load(folder).render_chat([{"role": "user", "content": "hi"}])

    assert ids == [256, 258, 104, 105, 259]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", "{"),
        ("tokenizer.json", "{}"),
        ("tokenizer.json", '{"added_tokens": [], "model": 5}'),
        ("tokenizer_config.json", "{"),
        ("tokenizer_config.json", "[]"),
        ("tokenizer_config.json", '{"bos_token": 5}'),
        ("tokenizer_config.json", '{"model_max_length": "long"}'),
        ("special_tokens_map.json", "{"),
        ("added_tokens.json", "["),
        ("chat_template.json", "{"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, name: str, content: str) -> None:
    """With its folder, and before a model is loaded."""
    folder = copy_tokenizer(tmp_path / "t")
    (folder / name).write_text(content)

    with pytest.raises(UsageError, match=str(folder)):
        HubTokenizer.load(folder)


def begins(folder: Path) -> HubTokenizer:
    """The tiny tokenizer with a processor that puts `<bos>` in front, as Llama's has."""
    copy_tokenizer(folder)
    path = folder / "tokenizer.json"
    document = json.loads(path.read_text())
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<bos>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<bos>": {"id": "<bos>", "ids": [256], "tokens": ["<bos>"]}},
    }
    path.write_text(json.dumps(document))
    return HubTokenizer.load(folder)


def test_a_raw_prompt_has_the_tokens_that_belong_around_it(tmp_path: Path) -> None:
    """As SGLang and vLLM tokenize a prompt; pieces of text have none, and none is doubled."""
    tokenizer = begins(tmp_path / "t")

    assert tokenizer.encode_prompt("hi") == [256, 104, 105]
    assert tokenizer.encode_prompt("<bos>hi") == [256, 104, 105]
    assert tokenizer.encode_prompt("") == [256]
    assert tokenizer.encode("hi") == [104, 105]
    assert tokenizer.render_chat([{"role": "user", "content": "hi"}]) == [256, 258, 104, 105, 259]


def test_raw_prompts_of_the_shipped_model_are_what_they_were() -> None:
    """Its tokenizer puts nothing around a text, so its baselines stand."""
    tokenizer = HubTokenizer.load(TINY)
    for text in ("Tell me about bees.", "", "Grüße\n"):
        assert tokenizer.encode_prompt(text) == tokenizer.encode(text) == list(text.encode())


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
