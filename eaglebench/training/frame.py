"""What a chat template puts around turns, as token ids.

    lead  USER  to_answer  ANSWER  to_user  USER  to_answer  ANSWER  ...

Found by rendering two turns whose texts are marks and cutting at the marks.
"""

from dataclasses import dataclass

from eaglebench.errors import UsageError
from eaglebench.model.tokenizer import HubTokenizer

_MARKS = ("\N{CIRCLED DIGIT ONE}", "\N{CIRCLED DIGIT TWO}", "\N{CIRCLED DIGIT THREE}")


@dataclass(frozen=True, slots=True)
class ChatFrame:
    """The template's own tokens.

    Attributes:
        lead: in front of the first user turn.
        to_answer: between a user turn and its answer; its first token ends the user turn.
        to_user: between an answer and the next user turn; its first token ends the answer.
    """

    lead: tuple[int, ...]
    to_answer: tuple[int, ...]
    to_user: tuple[int, ...]


def read_frame(tokenizer: HubTokenizer) -> ChatFrame:
    """The frame of a tokenizer's chat template.

    Raises:
        UsageError: there is no template, or it does not keep turns apart by tokens of its own.
    """
    roles = ("user", "assistant", "user")
    text = tokenizer.render_chat_text(
        [{"role": role, "content": mark} for role, mark in zip(roles, _MARKS, strict=True)]
    )
    pieces = []
    for mark in _MARKS:
        piece, found, text = text.partition(mark)
        if not found:
            raise UsageError("the chat template leaves out or rewrites the text of turns")
        pieces.append(tuple(tokenizer.encode(piece)))
    lead, to_answer, to_user = pieces
    if not lead or not to_answer or not to_user:
        raise UsageError(
            "the chat template has no tokens between turns, so that their ends can't be seen"
        )
    return ChatFrame(lead, to_answer, to_user)
