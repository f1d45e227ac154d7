"""Text to token ids and back, through `transformers`."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from eaglebench.errors import CheckpointError, UsageError

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def check_same_tokenizer(target: Path, draft: Path) -> None:
    """Refuse a head that comes with another tokenizer than its target's; most come with none.

    Raises:
        CheckpointError: both have a `tokenizer.json` and a token has another id in them.
    """
    files = [folder / "tokenizer.json" for folder in (target, draft)]
    if not all(path.is_file() for path in files):
        return
    mine, theirs = (Tokenizer.from_file(str(path)).get_vocab() for path in files)
    moved = [token for token, number in theirs.items() if mine.get(token) != number]
    if moved:
        raise CheckpointError(
            f"{draft} was made for another tokenizer: it has {len(theirs)} tokens, the target "
            f"{len(mine)}, and {len(moved)} have other ids, such as {moved[0]!r}",
            hint="a head works only with the target it was trained for",
        )


class HubTokenizer:
    """A tokenizer from a folder or a Hub id."""

    def __init__(self, tokenizer: Any, source: str) -> None:
        self._tokenizer = tokenizer
        self._source = source

    @classmethod
    def load(cls, path: Path | str, *, trust_remote_code: bool = False) -> "HubTokenizer":
        """Load a tokenizer.

        Raises:
            UsageError: there is none.
        """
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                str(path), trust_remote_code=trust_remote_code
            )
        except (OSError, ValueError, KeyError) as error:
            raise UsageError(f"can't load a tokenizer from {path}: {error}") from error
        return cls(tokenizer, str(path))

    @property
    def size(self) -> int:
        """Ids that have text; a model's vocabulary may be padded past them."""
        return len(self._tokenizer)

    def encode(self, text: str) -> list[int]:
        """Token ids of raw text, without special tokens added."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of token ids; an id the tokenizer does not know decodes to U+FFFD."""
        size = self.size
        pieces = []
        for is_known, run in groupby(token_ids, key=lambda token_id: 0 <= token_id < size):
            ids = list(run)
            pieces.append(
                str(self._tokenizer.decode(ids, skip_special_tokens=True))
                if is_known
                else REPLACEMENT * len(ids)
            )
        return "".join(pieces)

    def render_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Token ids of a conversation, ready for the assistant's turn.

        Raises:
            UsageError: there is no chat template, or it refuses these messages.
        """
        return self.encode(self.render_chat_text(messages))

    def render_chat_text(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The text of a conversation, ready for the assistant's turn.

        Raises:
            UsageError: there is no chat template, or it refuses these messages.
        """
        if not self._tokenizer.chat_template:
            raise UsageError(
                f"the tokenizer of {self._source} has no chat template",
                hint="use --prompt-format raw",
            )
        try:
            text = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages], tokenize=False, add_generation_prompt=True
            )
        except TemplateError as error:
            raise UsageError(
                f"the chat template of {self._source} refuses this conversation: {error}",
                hint="leave out --system-prompt, or use --prompt-format raw",
            ) from error
        return str(text)
