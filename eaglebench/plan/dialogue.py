"""What a user asks in one record of a file, however the conversation is written down."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ROLE_KEYS = ("role", "from")
CONTENT_KEYS = ("content", "value", "text")
_USER = {"user", "human", "prompter"}
_MODEL = {"assistant", "gpt", "chatgpt", "bing", "bard", "model", "ai", "bot"}
_SYSTEM = {"system", "developer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """The user's part of a conversation.

    Attributes:
        turns: what the user says, one after another; empty where nobody asks anything.
        system_prompt: what stands in front; None where nothing does.
        num_answers: answers that stand in the file and are left out, as the model gives its own.
    """

    turns: tuple[str, ...]
    system_prompt: str | None = None
    num_answers: int = 0


def read_dialogue(name: str, value: object) -> Dialogue:
    """A list of texts, or of messages as OpenAI or ShareGPT write them.

    Args:
        name: of the field.
        value: what stands there.

    Raises:
        ValueError: it is neither, a turn is empty, or somebody speaks who can't be given here.
    """
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        read = _of_messages(name, value)
    elif isinstance(value, list) and all(isinstance(part, str) for part in value):
        if not value:
            raise ValueError(f"{name} is empty")
        read = Dialogue(turns=tuple(value))
    else:
        raise ValueError(f"{name} is {_shape(value)}; expected a list of texts, or of messages")
    for number, turn in enumerate(read.turns, start=1):
        if not turn.strip():
            raise ValueError(f"turn {number} is empty")
    return read


def is_messages(value: object) -> bool:
    """Whether a value is written as messages, or is a list that could hold some."""
    return isinstance(value, list) and all(isinstance(part, dict) for part in value)


def _of_messages(name: str, messages: list[Mapping[str, Any]]) -> Dialogue:
    turns: list[str] = []
    system: str | None = None
    num_answers = 0
    for number, message in enumerate(messages, start=1):
        where = f"{name}, message {number}"
        role = next((message[key] for key in ROLE_KEYS if key in message), None)
        if role in _MODEL:
            num_answers += 1
        elif role in _USER:
            turns.append(_content(where, message))
        elif role in _SYSTEM and not turns and not num_answers:
            said = _content(where, message)
            system = said if system is None else f"{system}\n\n{said}"
        elif role in _SYSTEM:
            raise ValueError(f"{where}: the system speaks in the middle; expected it in front")
        else:
            raise ValueError(
                f"{where}: spoken by {'nobody' if role is None else repr(role)}; expected a "
                f"{' or '.join(map(repr, ROLE_KEYS))} of system, user (human) or assistant (gpt)"
            )
    return Dialogue(
        turns=tuple(turns),
        system_prompt=system if system and system.strip() else None,
        num_answers=num_answers,
    )


def _content(where: str, message: Mapping[str, Any]) -> str:
    content = next((message[key] for key in CONTENT_KEYS if key in message), None)
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    whole = [text for text in texts if isinstance(text, str)]
    if not whole or len(whole) < len(texts):
        raise ValueError(f"{where}: holds something else than text")
    return "\n".join(whole)


def _shape(value: object) -> str:
    if isinstance(value, list):
        return "a list that holds other things than texts"
    return {"str": "a text", "dict": "an object"}.get(type(value).__name__, type(value).__name__)
