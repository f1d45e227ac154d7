"""The tiny pair's byte tokenizer: 256 bytes and four marks."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

BOS, EOS, USER, ASSISTANT = 256, 257, 258, 259
MARKS = {"<bos>": BOS, "<eos>": EOS, "<user>": USER, "<assistant>": ASSISTANT}
VOCAB_SIZE = 260
DRAFT_TOKEN_IDS = (*range(32, 127), EOS)
"""What the head can propose: printable bytes and the end of an answer."""
CHAT_TEMPLATE = (
    "<bos>{% for m in messages %}"
    "{% if m['role'] == 'assistant' %}<assistant>{{ m['content'] }}<eos>"
    "{% else %}<user>{{ m['content'] }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


def byte_symbols() -> list[str]:
    """The printable stand-in of every byte, by byte (the GPT-2 table)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    symbols = {byte: chr(byte) for byte in printable}
    hidden = [byte for byte in range(256) if byte not in symbols]
    symbols |= {byte: chr(256 + index) for index, byte in enumerate(hidden)}
    return [symbols[byte] for byte in range(256)]


def save_tokenizer(folder: Path) -> None:
    """Write `tokenizer.json` and its config."""
    vocab = {symbol: byte for byte, symbol in enumerate(byte_symbols())}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in MARKS])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<bos>",
        "eos_token": "<eos>",
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")


def encode_conversation(exchanged: list[tuple[str, str]]) -> tuple[list[int], list[bool]]:
    """Token ids and which of them are answers (the loss looks at those most)."""
    ids, is_answer = [BOS], [False]
    for question, answer in exchanged:
        asked = [USER, *question.encode(), ASSISTANT]
        said = [*answer.encode(), EOS]
        ids += asked + said
        is_answer += [False] * len(asked) + [True] * len(said)
    return ids, is_answer
