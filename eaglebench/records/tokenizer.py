"""Text to token ids and back, whoever does it."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class Tokenizer(Protocol):
    """Text to token ids and back."""

    def encode(self, text: str) -> list[int]:
        """Token ids of a piece of text, without special tokens added."""
        ...

    def encode_prompt(self, text: str) -> list[int]:
        """Token ids of a raw prompt, with the special tokens that belong around it."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of token ids; ids without text decode to the replacement character."""
        ...

    def render_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Token ids of a conversation (`role`, `content`), ready for the assistant's turn.

        Raises:
            UsageError: the model's chat template refuses these messages or there is none.
        """
        ...
