"""What is asked: prompts in the order in which they depend on each other.

A chat's later turns hold the model's own earlier answers, so they can't be rendered before those
are known. A ladder is one conversation of raw prompts: its turns share prefixes through the cache
and not through their text, so all of them are known from the start.
"""

from dataclasses import dataclass
from typing import Literal

ConversationKind = Literal["chat", "raw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One prompt of a conversation: text, or token ids where lengths in tokens matter.

    Attributes:
        text: what the user says, or the raw prompt; None when `token_ids` is given.
        token_ids: the raw prompt as ids; None when `text` is given.
        max_new_tokens: most tokens to generate here; None is the run's own limit.
        measured: counts towards the headline. Donors of a ladder are recorded but don't count.
    """

    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    max_new_tokens: int | None = None
    measured: bool = True

    def __post_init__(self) -> None:
        if (self.text is None) == (self.token_ids is None):
            raise ValueError("a turn has either text or token ids")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One question: turns that run one after another.

    `question_id` is text even where the question file holds numbers: files may mix both.
    """

    question_id: str
    category: str
    turns: tuple[Turn, ...]
    kind: ConversationKind = "chat"
    system_prompt: str | None = None

    @property
    def depends_on_previous(self) -> bool:
        """Whether a turn's prompt holds the answers to the turns before it."""
        return self.kind == "chat"
