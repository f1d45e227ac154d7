"""One conversation as token ids, and files of them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eaglebench.errors import InputFileError
from eaglebench.training.frame import ChatFrame

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
                yield (
                    _from_messages(raw["messages"], frame, encode)
                    if ("messages" in raw)
                    else _from_ids(raw)
                )
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
            ends_answer = 1
            answers.append((start, len(ids) + ends_answer))
        ids += closing
    return Conversation(tuple(ids), tuple(answers))
