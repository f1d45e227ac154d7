"""Question files: what is read, what is refused, and where the message points."""

from pathlib import Path

import pytest

from eaglebench.errors import InputFileError, UsageError
from eaglebench.plan.questions import read_question_file


def make_file(folder: Path, content: str | bytes) -> Path:
    """Write a question file."""
    path = folder / "questions.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def make_line(question_id: object = 1, turns: object = '["hi"]') -> str:
    """One question as a line."""
    return f'{{"question_id": {question_id}, "turns": {turns}}}'


@pytest.mark.parametrize("num_turns", [1, 2, 3])
def test_any_number_of_turns_is_read(tmp_path: Path, num_turns: int) -> None:
    """One, two and three turns are all fine."""
    turns = ", ".join('"hi"' for _ in range(num_turns))
    path = make_file(tmp_path, make_line(turns=f"[{turns}]"))

    assert len(read_question_file(path).questions[0].turns) == num_turns


def test_blank_lines_bom_and_crlf_are_read(tmp_path: Path) -> None:
    """Blank lines, a BOM, CRLF, and a missing newline at the end change nothing."""
    text = "\r\n".join([make_line(1), "", "   ", make_line(2), "", ""]) + make_line(3)
    path = make_file(tmp_path, b"\xef\xbb\xbf" + text.encode())

    questions = read_question_file(path).questions

    assert [question.question_id for question in questions] == ["1", "2", "3"]


def test_line_separator_inside_a_text_is_no_line_end(tmp_path: Path) -> None:
    """U+2028 is an ordinary character of a JSON text."""
    path = make_file(tmp_path, make_line(turns='["a\u2028b"]'))

    assert read_question_file(path).questions[0].turns == ("a\u2028b",)


def test_ids_of_mixed_kinds_are_read(tmp_path: Path) -> None:
    """Numbers and texts may be mixed."""
    path = make_file(tmp_path, "\n".join([make_line(7), make_line('"seven"')]))

    assert [q.question_id for q in read_question_file(path).questions] == ["7", "seven"]


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ([make_line(1), '{"question_id": 2,'], 2, "broken JSON"),
        ([make_line(1), "", "[1]"], 3, "expected a JSON object"),
        ([make_line(1), make_line(1)], 2, "line 1"),
        ([make_line(1), make_line('"1"')], 2, "line 1"),
        ([make_line("null")], 1, "question_id"),
        ([make_line("true")], 1, "question_id"),
        (['{"turns": ["hi"]}'], 1, "question_id"),
        (['{"question_id": 1}'], 1, "turns"),
        (['{"question_id": 1, "prompt": "hi"}'], 1, "found: prompt, question_id"),
        (['{"question_id": 1, "conversations": [{"value": "hi"}]}'], 1, "conversations"),
        ([make_line(turns="[]")], 1, "is empty"),
        ([make_line(turns='"hi"')], 1, "a text"),
        ([make_line(turns='[["hi"]]')], 1, "other things than texts"),
        ([make_line(turns='["hi", ""]')], 1, "turn 2 is empty"),
        ([make_line(turns='["   "]')], 1, "turn 1 is empty"),
    ],
)
def test_bad_line_is_refused_with_its_number(
    tmp_path: Path, lines: list[str], line: int, words: str
) -> None:
    """Whatever can't be run later is refused at load, with file and line."""
    path = make_file(tmp_path, "\n".join(lines))

    with pytest.raises(InputFileError) as caught:
        read_question_file(path)

    assert caught.value.line == line
    assert caught.value.message.startswith(f"{path}:{line}: ")
    assert words in caught.value.message


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe"])
def test_file_without_questions_is_refused(tmp_path: Path, content: bytes) -> None:
    """An empty file and a file that is no text are refused."""
    with pytest.raises(InputFileError):
        read_question_file(make_file(tmp_path, content))


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    """A missing file and a folder are told apart."""
    with pytest.raises(InputFileError, match="no such file"):
        read_question_file(tmp_path / "none.jsonl")
    with pytest.raises(InputFileError, match="is a folder"):
        read_question_file(tmp_path)


def test_reference_is_never_needed(tmp_path: Path) -> None:
    """References of any shape, and unknown fields, are left alone."""
    path = make_file(
        tmp_path,
        '{"question_id": 1, "turns": ["a", "b"], "reference": null}\n'
        '{"question_id": 2, "turns": ["a", "b"], "reference": ["x"], "extra": {}}',
    )

    assert len(read_question_file(path).questions) == 2


def test_other_layouts_are_read_when_they_are_mapped(tmp_path: Path) -> None:
    """A mapping is explicit: ours to theirs; a single text needs `prompt`."""
    path = make_file(tmp_path, '{"id": "a", "instruction": "hi", "topic": "greetings"}')

    file = read_question_file(
        path, {"question_id": "id", "prompt": "instruction", "category": "topic"}
    )

    assert file.questions[0].turns == ("hi",)
    assert file.questions[0].category == "greetings"


def test_a_prompt_may_be_mapped_to_its_own_name(tmp_path: Path) -> None:
    """What the hint of a refused file says to do is taken."""
    path = make_file(tmp_path, '{"task_id": "x/0", "prompt": "def add(a, b):"}')

    file = read_question_file(path, {"question_id": "task_id", "prompt": "prompt"})

    assert file.questions[0].turns == ("def add(a, b):",)


def test_a_name_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    """It would change nothing."""
    path = make_file(tmp_path, make_line())

    with pytest.raises(UsageError, match="unknown key 'turn'; did you mean turns") as caught:
        read_question_file(path, {"turn": "messages"})
    assert "question_id, category, turns, prompt" in str(caught.value.hint)


@pytest.mark.parametrize("text", ['"\\ud800"', '["a \\udc00"]'])
def test_half_a_surrogate_pair_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    """No tokenizer and no file can hold it; a whole pair is a character."""
    whole = make_file(tmp_path, make_line(turns='["\\ud83d\\ude80"]'))
    assert read_question_file(whole).questions[0].turns == ("\U0001f680",)

    with pytest.raises(InputFileError, match=":1: holds half of a surrogate pair"):
        read_question_file(make_file(tmp_path, make_line(turns=text)))
