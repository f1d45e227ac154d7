"""Question files as people have them: MT-Bench's shape, messages, ShareGPT, or one prompt each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from eaglebench.errors import InputFileError, UsageError
from eaglebench.files import read_text
from eaglebench.plan.dialogue import Dialogue, is_messages, read_dialogue
from eaglebench.plan.explain import unknown_name
from eaglebench.plan.jsonl import read_records
from eaglebench.records.words import counted

QUESTION_FIELDS = ("question_id", "category", "turns", "prompt", "system_prompt")
"""What a field can be mapped to; `prompt` is a text that becomes the only turn."""
ID_FIELDS = ("question_id", "id", "task_id", "prompt_id", "conversation_id", "uid", "qid")
"""Where an id is looked for, in this order; records without one are numbered."""
DIALOGUE_FIELDS = ("turns", "messages", "conversations", "conversation")
"""Where several turns are looked for, in this order."""
TEXT_FIELDS = ("prompt", "question", "instruction", "query", "problem", "text")
"""Where a single text is looked for after that; messages may stand there as well."""
SYSTEM_FIELDS = ("system_prompt", "system")
DEFAULT_CATEGORY = "general"
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a user asks, turn by turn; every turn holds some text.

    `system_prompt` is the conversation's own; None where the file gives it none.
    """

    question_id: str
    category: str
    turns: tuple[str, ...]
    system_prompt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFile:
    """The questions of a file, in its order, and the digest of its content.

    `remarks` say how it was read, where that does not go without saying.
    """

    path: Path
    sha256: str
    questions: tuple[Question, ...]
    remarks: tuple[str, ...] = ()


def read_question_file(path: Path, fields: Mapping[str, str] | None = None) -> QuestionFile:
    """Read and check every question.

    The first record says which fields hold turns and ids; the others have to follow it.

    Args:
        path: JSON Lines, or one JSON array.
        fields: our names (`QUESTION_FIELDS`) to the file's, instead of the usual ones.

    Raises:
        UsageError: a name of ours is none.
        InputFileError: with file and line, for whatever could not be run later.
    """
    _check_fields(fields or {})
    records = list(read_records(path))
    if not records:
        raise InputFileError(path, "holds no questions")
    reader = _Reader(path, fields or {}, records)
    questions = reader.questions()
    if not questions:
        raise InputFileError(path, "holds no questions: no user speaks in it")
    return QuestionFile(
        path=path,
        sha256=sha256(read_text(path).encode()).hexdigest(),
        questions=questions,
        remarks=tuple(reader.remarks),
    )


def _check_fields(fields: Mapping[str, str]) -> None:
    unknown = [name for name in fields if name not in QUESTION_FIELDS]
    if unknown:
        raise UsageError(
            f"--question-field {unknown[0]}={fields[unknown[0]]}: "
            f"{unknown_name(unknown[0], QUESTION_FIELDS)}",
            hint=f"the names that can be mapped are {', '.join(QUESTION_FIELDS)}",
        )


class _Reader:
    """Turns the records of one file into questions, and notes what it took for what."""

    def __init__(
        self, path: Path, fields: Mapping[str, str], records: Sequence[tuple[int, Record]]
    ) -> None:
        self.path = path
        self.fields = fields
        self.records = records
        self.remarks: list[str] = []
        first = records[0][1]
        self.turn_fields = self._turn_fields(first)
        self.id_field = fields.get("question_id") or _first(ID_FIELDS, first)

    def questions(self) -> tuple[Question, ...]:
        """All of them.

        Raises:
            InputFileError: an id is none or was seen before, or turns can't be asked.
        """
        ids = self._ids()
        read = [
            self._dialogue(name, line, record)
            for name, (line, record) in zip(ids, self.records, strict=True)
        ]
        made = [
            self._question(name, record, dialogue)
            for name, (_, record), dialogue in zip(ids, self.records, read, strict=True)
            if dialogue.turns
        ]
        self._remark_on(read)
        return tuple(made)

    def _question(self, name: str, record: Record, dialogue: Dialogue) -> Question:
        category = record.get(self.fields.get("category", "category"))
        own = self.fields.get("system_prompt")
        system = record.get(own or _first(SYSTEM_FIELDS, record) or "")
        said = system if isinstance(system, str) and system.strip() else None
        return Question(
            question_id=name,
            category=category if isinstance(category, str) and category else DEFAULT_CATEGORY,
            turns=dialogue.turns,
            system_prompt=dialogue.system_prompt or said,
        )

    # --- ids ----------------------------------------------------------------------------------

    def _ids(self) -> list[str]:
        """Those of the file; numbers where it has none that tell its records apart."""
        name = self.id_field
        if name is None:
            self.remarks.append("records have no ids; they are numbered from 1")
            return self._numbers()
        is_ours = name in (self.fields.get("question_id"), ID_FIELDS[0])
        if not is_ours and not self._tells_apart(name):
            self.remarks.append(
                f"{name!r} does not tell records apart; they are numbered from 1 "
                f"(--question-field question_id={name} insists on it)"
            )
            return self._numbers()
        first_line: dict[str, int] = {}
        return [self._own_id(name, line, record, first_line) for line, record in self.records]

    def _own_id(self, name: str, line: int, record: Record, first_line: dict[str, int]) -> str:
        value = record.get(name)
        if not _is_id(value):
            self._refuse_layout(line, record, f"{name!r} (a number or a text)")
        question_id = str(value)
        if question_id in first_line:
            raise InputFileError(
                self.path,
                f"{name} {question_id} was used in line {first_line[question_id]} already",
                line=line,
                hint="every question needs an id of its own (1 and '1' are the same)",
            )
        first_line[question_id] = line
        return question_id

    def _tells_apart(self, name: str) -> bool:
        values = [record.get(name) for _, record in self.records]
        return all(map(_is_id, values)) and len({*map(str, values)}) == len(values)

    def _numbers(self) -> list[str]:
        return [str(number) for number in range(1, len(self.records) + 1)]

    # --- turns --------------------------------------------------------------------------------

    def _turn_fields(self, first: Record) -> tuple[str, ...]:
        """Where turns are looked for in every record, in this order."""
        mapped = [self.fields[name] for name in ("turns", "prompt") if name in self.fields]
        usual = _first((*DIALOGUE_FIELDS, *TEXT_FIELDS), first)
        return tuple(mapped) if mapped else (usual or DIALOGUE_FIELDS[0],)

    def _dialogue(self, question_id: str, line: int, record: Record) -> Dialogue:
        name = next((each for each in self.turn_fields if record.get(each) is not None), None)
        if name is None:
            wanted = " or ".join(map(repr, self.turn_fields))
            self._refuse_layout(line, record, f"{wanted} (turns, messages or a prompt)")
        value = record[name]
        if isinstance(value, str) and self._may_be_text(name):
            value = [_with_input(name, value, record)]
        elif value == [] and name in DIALOGUE_FIELDS[1:]:
            return Dialogue(turns=())  # as data sets have them: nobody says anything
        try:
            return read_dialogue(name, value)
        except ValueError as error:
            reason = f"question {question_id}: {error}"
            raise InputFileError(self.path, reason, line=line) from error

    def _may_be_text(self, name: str) -> bool:
        """Whether a text there is a turn, rather than a list that was written as a text."""
        return name not in DIALOGUE_FIELDS or name == self.fields.get("prompt")

    def _refuse_layout(self, line: int, record: Record, wanted: str) -> NoReturn:
        raise InputFileError(
            self.path,
            f"no {wanted} (found: {', '.join(sorted(map(str, record))) or 'nothing'})",
            line=line,
            hint="name the file's fields: --question-field turns=NAME for a list of texts or of "
            "messages, prompt=NAME for a single text, question_id=NAME",
        )

    def _remark_on(self, read: Sequence[Dialogue]) -> None:
        name, first = self.turn_fields[0], self.records[0][1]
        if not {"turns", "prompt"} & {*self.fields} and name != DIALOGUE_FIELDS[0]:
            kind = "the user's messages in" if is_messages(first.get(name)) else "the text of"
            self.remarks.insert(0, f"each question is {kind} {name!r}")
        if answers := sum(each.num_answers for each in read):
            self.remarks.append(
                f"{counted(answers, 'answer')} in it left out; the model gives its own"
            )
        if silent := sum(not each.turns for each in read):
            self.remarks.append(f"{counted(silent, 'record')} in which no user speaks passed over")


def _first(names: Sequence[str], record: Record) -> str | None:
    return next((name for name in names if name in record), None)


def _is_id(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool) and value != ""


def _with_input(name: str, text: str, record: Record) -> str:
    """An instruction and what it is about, where they stand apart as in Alpaca's files."""
    more = record.get("input") if name == "instruction" else None
    return f"{text}\n\n{more}" if isinstance(more, str) and more.strip() else text
