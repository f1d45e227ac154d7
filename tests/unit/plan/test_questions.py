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
        ([make_line(1), '{"turns": ["hi"]}'], 2, "question_id"),
        (['{"question_id": 1}'], 1, "turns"),
        ([make_line(1), '{"question_id": 2, "prompt": "hi"}'], 2, "found: prompt, question_id"),
        (['{"question_id": 1, "conversations": [{"value": "hi"}]}'], 1, "spoken by nobody"),
        (
            ['{"messages": [{"role": "tool", "content": "hi"}]}'],
            1,
            "messages, message 1: spoken by 'tool'",
        ),
        (['{"messages": [{"role": "user", "content": [{"image": 1}]}]}'], 1, "else than text"),
        (['{"messages": [{"role": "user", "content": ""}]}'], 1, "turn 1 is empty"),
        (['{"messages": []}'], None, "no user speaks"),
        (
            [
                '{"messages": [{"role": "user", "content": "hi"}, {"role": "system", "content": "a"}]}'
            ],
            1,
            "in the middle",
        ),
        (["[", '{"prompt": "hi"},', "7]"], 3, "expected a JSON object, found"),
        (["[", '{"prompt": "hi"}', '{"prompt": "ho"}]'], 3, "broken JSON"),
        (["[]"], None, "holds no questions"),
        ([make_line(turns="[]")], 1, "is empty"),
        ([make_line(turns='"hi"')], 1, "a text"),
        ([make_line(turns='[["hi"]]')], 1, "other things than texts"),
        ([make_line(turns='["hi", ""]')], 1, "turn 2 is empty"),
        ([make_line(turns='["   "]')], 1, "turn 1 is empty"),
    ],
)
def test_bad_line_is_refused_with_its_number(
    tmp_path: Path, lines: list[str], line: int | None, words: str
) -> None:
    """Whatever can't be run later is refused at load, with file and line."""
    path = make_file(tmp_path, "\n".join(lines))

    with pytest.raises(InputFileError) as caught:
        read_question_file(path)

    assert caught.value.line == line
    where = f"{path}: " if line is None else f"{path}:{line}: "
    assert caught.value.message.startswith(where)
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
    assert "question_id, category, turns, prompt, system_prompt" in str(caught.value.hint)


MESSAGES = """{"id": "a1", "messages": [
    {"role": "system", "content": "Be short."}, {"role": "user", "content": "What is a bee?"},
    {"role": "assistant", "content": "An insect."},
    {"role": "user", "content": [{"type": "text", "text": "Does it sting?"}]}]}"""
SHAREGPT = """{"id": "s1", "system": "Be short.", "conversations": [
    {"from": "human", "value": "What is a bee?"}, {"from": "gpt", "value": "An insect."},
    {"from": "human", "value": "Does it sting?"}, {"from": "gpt", "value": "Yes."}]}"""


@pytest.mark.parametrize(
    ("record", "name", "answers"), [(MESSAGES, "a1", "1 answer "), (SHAREGPT, "s1", "2 answers ")]
)
@pytest.mark.parametrize("form", ["{}", "[{}]", '\n[\n{} , {{"id": 2, {}]\n'])
def test_conversations_are_read(
    tmp_path: Path, record: str, name: str, answers: str, form: str
) -> None:
    """The user's turns and the system prompt; the file's answers are left out, with a word."""
    one = record.replace("\n", " ")
    rest = one.partition(", ")[2]
    path = make_file(tmp_path, form.format(one, rest) if "2" in form else form.format(one))

    file = read_question_file(path)

    question = file.questions[0]
    assert question.question_id == name
    assert question.turns == ("What is a bee?", "Does it sting?")
    assert question.system_prompt == "Be short."
    assert len(file.questions) == (2 if "2" in form else 1)
    assert "the user's messages in" in file.remarks[0]
    expected = answers if "2" not in form else f"{2 * int(answers[0])} answers "
    assert expected in file.remarks[-1]
    assert read_question_file(path, {"turns": one.partition("[")[0].split('"')[-2]}).questions


@pytest.mark.parametrize(
    ("record", "turn"),
    [
        ('{"prompt": "hi", "entry_point": "add"}', "hi"),
        ('{"question": "hi", "answer": "7"}', "hi"),
        ('{"instruction": "hi", "input": "", "output": "x"}', "hi"),
        ('{"instruction": "hi", "input": "you", "output": "x"}', "hi\n\nyou"),
        ('{"problem": "hi", "text": "no"}', "hi"),
        ('{"prompt": [{"role": "user", "content": "hi"}]}', "hi"),
    ],
)
def test_single_prompts_are_read_and_numbered(tmp_path: Path, record: str, turn: str) -> None:
    """What has no ids is numbered, and both are said."""
    file = read_question_file(make_file(tmp_path, f"{record}\n{record}\n"))

    assert [q.question_id for q in file.questions] == ["1", "2"]
    assert [q.turns for q in file.questions] == [(turn,), (turn,)]
    assert "each question is" in file.remarks[0]
    assert "records have no ids; they are numbered from 1" in file.remarks


def test_an_id_that_is_none_is_told(tmp_path: Path) -> None:
    """A usual name that does not tell records apart; mapped by hand it is insisted on."""
    path = make_file(tmp_path, '{"id": "a", "prompt": "hi"}\n{"id": "a", "prompt": "ho"}')

    file = read_question_file(path)

    assert [q.question_id for q in file.questions] == ["1", "2"]
    assert "'id' does not tell records apart" in file.remarks[1]
    with pytest.raises(InputFileError, match="id a was used in line 1 already"):
        read_question_file(path, {"question_id": "id"})


def test_records_in_which_nobody_asks_are_passed_over(tmp_path: Path) -> None:
    """Data sets have some; the number of the others stays that of the record."""
    says = '{"conversations": [{"from": "human", "value": "hi"}]}'
    silent = '{"conversations": [{"from": "gpt", "value": "ho"}]}'
    none = '{"conversations": []}'

    file = read_question_file(make_file(tmp_path, f"{silent}\n{says}\n{none}"))

    assert [q.question_id for q in file.questions] == ["2"]
    assert "2 records in which no user speaks passed over" in file.remarks


def test_our_own_shape_needs_no_remark(tmp_path: Path) -> None:
    """Nothing was taken for something else."""
    assert read_question_file(make_file(tmp_path, make_line())).remarks == ()


@pytest.mark.parametrize("text", ['"\\ud800"', '["a \\udc00"]'])
def test_half_a_surrogate_pair_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    """No tokenizer and no file can hold it; a whole pair is a character."""
    whole = make_file(tmp_path, make_line(turns='["\\ud83d\\ude80"]'))
    assert read_question_file(whole).questions[0].turns == ("\U0001f680",)

    with pytest.raises(InputFileError, match=":1: holds half of a surrogate pair"):
        read_question_file(make_file(tmp_path, make_line(turns=text)))
