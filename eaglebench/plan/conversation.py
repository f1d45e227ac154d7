"""What is sent to the engine, before it is turned into tokens."""

from dataclasses import dataclass
from typing import Literal

PromptKind = Literal["chat", "raw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One prompt of a conversation.

    Attributes:
        text: what the user says, or the raw prompt; None where `token_ids` is given.
        token_ids: the prompt itself, for workloads that need exact lengths.
        max_new_tokens: most tokens to generate here; None is the run's own.
        measured: whether the turn counts for the headline; a ladder's donors don't.
    """

    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    max_new_tokens: int | None = None
    measured: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Turns that run one after another.

    In a chat each prompt holds the earlier turns and the model's own answers; raw turns are
    prompts of their own, related only by what they share.
    """

    question_id: str
    category: str
    kind: PromptKind
    turns: tuple[Turn, ...]
    system_prompt: str | None = None
