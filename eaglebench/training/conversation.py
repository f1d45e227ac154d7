"""Conversations as token ids, files of them, and what a chat template puts around their turns.

    lead  USER  to_answer  ANSWER  to_user  USER  to_answer  ANSWER  ...

The frame is found by rendering two turns whose texts are marks and cutting at the marks.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from eaglebench.errors import InputFileError, UsageError
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


Span = tuple[int, int]
Encode = Callable[[str], list[int]]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation.

    Attributes:
        ids: all of its tokens, those of the chat template included.
        answers: half-open spans of `ids` that the target answered.
        number: which of the generated ones it is; None for text from elsewhere.
    """

    ids: tuple[int, ...]
    answers: tuple[Span, ...]
    number: int | None = None

    def __post_init__(self) -> None:
        if not all(0 <= start <= end <= len(self.ids) for start, end in self.answers):
            raise ValueError(f"answers {self.answers} lie outside of {len(self.ids)} tokens")

    @property
    def digest(self) -> bytes:
        """SHA-256 of the tokens."""
        return sha256(",".join(map(str, self.ids)).encode()).digest()

    @property
    def num_answer_tokens(self) -> int:
        """Tokens of all answers."""
        return sum(end - start for start, end in self.answers)


def append_conversations(path: Path, conversations: Iterable[Conversation]) -> None:
    """Add lines to a file; each is written whole."""
    with path.open("a", encoding="utf-8") as file:
        for conversation in conversations:
            file.write(json.dumps(asdict(conversation)) + "\n")
            file.flush()


def read_conversations(path: Path, frame: ChatFrame, encode: Encode) -> Iterator[Conversation]:
    """All lines of a file; a last line cut off by an interruption is left out.

    A line is `{"ids": [...], "answers": [[start, end], ...]}`, or `{"messages": [{"role": "user",
    "content": ...}, {"role": "assistant", "content": ...}, ...]}`, whose texts are put into the frame.

    Raises:
        InputFileError: a line is neither.
    """
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                raw = json.loads(line)
                is_text = "messages" in raw
                yield _from_messages(raw["messages"], frame, encode) if is_text else _from_ids(raw)
            except (ValueError, KeyError, TypeError) as error:
                if not line.endswith("\n"):
                    return
                raise InputFileError(
                    path,
                    f"no conversation: {type(error).__name__} {error}",
                    line=number,
                    hint='expected {"ids": [...], "answers": [[start, end], ...]} or '
                    '{"messages": [{"role": ..., "content": ...}, ...]}',
                ) from error


def _from_ids(raw: Mapping[str, Any]) -> Conversation:
    answers = tuple((int(start), int(end)) for start, end in raw["answers"])
    return Conversation(tuple(map(int, raw["ids"])), answers, raw.get("number"))


def _from_messages(
    messages: Sequence[Mapping[str, str]], frame: ChatFrame, encode: Encode
) -> Conversation:
    """Users and assistants in turns; the frame's own system prompt stands in front."""
    roles = [message["role"] for message in messages]
    if roles != ["user", "assistant"] * (len(roles) // 2) or not roles:
        raise ValueError(f"roles {roles}; expected user and assistant in turns")
    ids = list(frame.lead)
    answers = []
    for index, message in enumerate(messages):
        is_answer = index % 2 == 1
        start = len(ids)
        closing = frame.to_user if is_answer else frame.to_answer
        ids += encode(message["content"])
        if is_answer:
            answers.append((start, len(ids) + 1))  # its end is something to propose as well
        ids += closing
    return Conversation(tuple(ids), tuple(answers))
