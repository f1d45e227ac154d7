"""Question files: one JSON object a line, in the shape of MT-Bench."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from eaglebench.errors import InputFileError, UsageError
from eaglebench.files import read_text
from eaglebench.plan.explain import unknown_name
from eaglebench.plan.jsonl import read_jsonl

QUESTION_FIELDS = ("question_id", "category", "turns", "prompt")
"""What a field can be mapped to; `prompt` is a text that becomes the only turn."""

DEFAULT_CATEGORY = "general"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a user asks, turn by turn; every turn holds some text."""

    question_id: str
    category: str
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFile:
    """The questions of a file, in its order, and the digest of its content."""

    path: Path
    sha256: str
    questions: tuple[Question, ...]


def read_question_file(path: Path, fields: Mapping[str, str] | None = None) -> QuestionFile:
    """Read and check every question.

    Args:
        path: a JSON Lines file.
        fields: our names (`QUESTION_FIELDS`) to the file's, where they differ. Nothing is guessed:
            a file of another layout is refused unless it is mapped here.

    Raises:
        UsageError: a name of ours is none.
        InputFileError: with file and line, for whatever could not be run later.
    """
    reader = _Reader(path, fields or {})
    questions = tuple(reader.question(line, record) for line, record in read_jsonl(path))
    if not questions:
        raise InputFileError(path, "holds no questions")
    digest = sha256(read_text(path).encode()).hexdigest()
    return QuestionFile(path=path, sha256=digest, questions=questions)


class _Reader:
    """Turns records into questions; remembers the ids it has seen."""

    def __init__(self, path: Path, fields: Mapping[str, str]) -> None:
        unknown = [name for name in fields if name not in QUESTION_FIELDS]
        if unknown:
            raise UsageError(
                f"--question-field {unknown[0]}={fields[unknown[0]]}: "
                f"{unknown_name(unknown[0], QUESTION_FIELDS)}",
                hint=f"the names that can be mapped are {', '.join(QUESTION_FIELDS)}",
            )
        self.path = path
        self.fields = {name: fields.get(name, name) for name in QUESTION_FIELDS}
        self.has_prompts = "prompt" in fields
        self.first_line: dict[str, int] = {}

    def question(self, line: int, record: Mapping[str, Any]) -> Question:
        """One question.

        Raises:
            InputFileError: no id, an id seen before, or turns that can't be asked.
        """
        question_id = self._question_id(line, record)
        category = record.get(self.fields["category"])
        return Question(
            question_id=question_id,
            category=category if isinstance(category, str) and category else DEFAULT_CATEGORY,
            turns=self._turns(line, record, question_id),
        )

    def _question_id(self, line: int, record: Mapping[str, Any]) -> str:
        name = self.fields["question_id"]
        value = record.get(name)
        if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
            self._refuse_layout(line, record, name)
        question_id = str(value)
        if question_id in self.first_line:
            raise InputFileError(
                self.path,
                f"{name} {question_id} was used in line {self.first_line[question_id]} already",
                line=line,
                hint="every question needs an id of its own (1 and '1' are the same)",
            )
        self.first_line[question_id] = line
        return question_id

    def _turns(self, line: int, record: Mapping[str, Any], question_id: str) -> tuple[str, ...]:
        turns, name = record.get(self.fields["turns"]), self.fields["turns"]
        if turns is None and self.has_prompts:
            # A plain text is taken as the only turn where the user said so, and nowhere else.
            name = self.fields["prompt"]
            prompt = record.get(name)
            turns = [prompt] if isinstance(prompt, str) else prompt
        if turns is None:
            self._refuse_layout(line, record, name)
        if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
            raise InputFileError(
                self.path,
                f"question {question_id}: {name} is {_shape(turns)}; expected a list of texts",
                line=line,
            )
        if not turns:
            raise InputFileError(self.path, f"question {question_id}: {name} is empty", line=line)
        for number, turn in enumerate(turns, start=1):
            if not turn.strip():
                raise InputFileError(
                    self.path, f"question {question_id}: turn {number} is empty", line=line
                )
        return tuple(turns)

    def _refuse_layout(self, line: int, record: Mapping[str, Any], missing: str) -> None:
        raise InputFileError(
            self.path,
            f"no {missing!r} (found: {', '.join(sorted(map(str, record))) or 'nothing'}); expected "
            f"{self.fields['question_id']!r} (a number or a text) and {self.fields['turns']!r} "
            "(a list of texts)",
            line=line,
            hint="map other names with --question-field question_id=NAME --question-field "
            "turns=NAME, or prompt=NAME for a single text",
        )


def _shape(value: object) -> str:
    if isinstance(value, list):
        return "a list that holds other things than texts"
    return {"str": "a text", "dict": "an object"}.get(type(value).__name__, type(value).__name__)
