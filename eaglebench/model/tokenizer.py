"""Text to token ids and back, through `transformers`."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import AutoTokenizer

from eaglebench.errors import CheckpointError, UsageError
from eaglebench.foreign import foreign_code
from eaglebench.model.model_files import TEMPLATE_FILES, TOKENIZER_FILES, readable

_TEMPLATE_PLACES = ("chat_template.jinja", "additional_chat_templates", "tokenizer_config.json")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def check_same_tokenizer(target: Path, draft: Path) -> None:
    """Refuse a head that comes with another tokenizer than its target's; most come with none.

    Raises:
        CheckpointError: both have a `tokenizer.json` and a token has another id in them.
    """
    files = [folder / "tokenizer.json" for folder in (target, draft)]
    if not all(path.is_file() for path in files):
        return
    mine, theirs = (_vocabulary(path) for path in files)
    moved = [token for token, number in theirs.items() if mine.get(token) != number]
    if moved:
        raise CheckpointError(
            f"{draft} was made for another tokenizer: it has {len(theirs)} tokens, the target "
            f"{len(mine)}, and {len(moved)} have other ids, such as {moved[0]!r}",
            hint="a head works only with the target it was trained for",
        )


def _vocabulary(path: Path) -> dict[str, int]:
    with (
        readable(path.parent, (path.name,)) as folder,
        foreign_code(lambda why: CheckpointError(f"{path} is no tokenizer: {why}")),
    ):
        return Tokenizer.from_file(str(folder / path.name)).get_vocab()


class HubTokenizer:
    """A tokenizer from a folder or a Hub id."""

    def __init__(self, tokenizer: Any, source: str) -> None:
        self._tokenizer = tokenizer
        self._source = source

    @classmethod
    def load(cls, path: Path | str, *, trust_remote_code: bool = False) -> "HubTokenizer":
        """Load a tokenizer; a UsageError if there is none, or a file of it is broken."""
        with (
            readable(Path(path), TOKENIZER_FILES, TEMPLATE_FILES) as folder,
            foreign_code(lambda why: UsageError(f"can't load a tokenizer from {path}: {why}")),
        ):
            tokenizer = AutoTokenizer.from_pretrained(
                str(folder if folder.is_dir() else path), trust_remote_code=trust_remote_code
            )
            tokenizer.encode("a")  # some settings of a wrong type are met only here
        return cls(tokenizer, str(path))

    @property
    def size(self) -> int:
        """Ids that have text; a model's vocabulary may be padded past them."""
        return len(self._tokenizer)

    def encode(self, text: str) -> list[int]:
        """Token ids of raw text, without special tokens added."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def encode_prompt(self, text: str) -> list[int]:
        """Token ids of a raw prompt, with the special tokens that the tokenizer puts around a text.

        That is what SGLang and vLLM compute of a prompt. Where the text begins with the first of
        them already, as text that was rendered elsewhere does, it is not put there twice.
        """
        ids: list[int] = self._tokenizer.encode(text)
        begin = self._tokenizer.bos_token_id
        return ids[1:] if begin is not None and ids[:2] == [begin, begin] else ids

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
        """Token ids of a conversation, ready for the assistant's turn; see `render_chat_text`."""
        return self.encode(self.render_chat_text(messages))

    def render_chat_text(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The text of a conversation, ready for the assistant's turn.

        Raises:
            UsageError: there is no chat template, or it refuses these messages.
        """
        template = self._tokenizer.chat_template
        if not template:
            raise UsageError(
                f"the tokenizer of {self._source} has no chat template",
                hint="use --prompt-format raw",
            )
        if isinstance(template, dict) and "default" not in template:
            raise UsageError(
                f"{self._template_place} holds chat templates named {', '.join(sorted(template))} "
                "and none named default",
                hint="name one of them default, or use --prompt-format raw",
            )
        with foreign_code(self._refused):
            text = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages], tokenize=False, add_generation_prompt=True
            )
        return str(text)

    def _refused(self, reason: str) -> UsageError:
        return UsageError(
            f"the chat template in {self._template_place} refuses this conversation: {reason}",
            hint="leave out --system-prompt, or use --prompt-format raw",
        )

    @property
    def _template_place(self) -> Path:
        """The file that holds the chat template; `transformers` takes the first that is there."""
        folder = Path(self._source)
        for name in _TEMPLATE_PLACES:
            if any(folder.glob(name)):
                return folder / name
        return folder
