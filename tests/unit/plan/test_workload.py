"""Workloads: the conversations that suites are made of."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from eaglebench.errors import InputFileError, UsageError
from eaglebench.plan.conversation import Conversation, PromptKind
from eaglebench.plan.questions import Question
from eaglebench.plan.suite import Suite, load_suite, read_suite, suite_names
from eaglebench.plan.workload import WorkloadInputs, make_conversations
from eaglebench.records.tokenizer import Tokenizer

_FIRST = (
    "Question {0} has a first sentence of quite a few different words, number {0} at the end. "
    "Short one."
)
_SECOND = (
    "And question {0} has a second turn whose only sentence is rather long and tedious as well."
)


class WordTokenizer:
    """One id a word; the same word always has the same id."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        """Ids in order of first appearance."""
        return [self.ids.setdefault(word, len(self.ids)) for word in text.split()]

    def encode_prompt(self, text: str) -> list[int]:
        """The same: nothing belongs around a text."""
        return self.encode(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Words joined by spaces."""
        words = list(self.ids)
        return " ".join(words[token_id] for token_id in token_ids)

    def render_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Contents joined."""
        return self.encode(" ".join(message["content"] for message in messages))


def make_questions(count: int = 80) -> tuple[Question, ...]:
    """Questions of ten a category, two turns each."""
    return tuple(
        Question(
            question_id=str(number),
            category=f"category {number // 10}",
            turns=(_FIRST.format(number), _SECOND.format(number)),
        )
        for number in range(count)
    )


def make(
    name: str, *, page_size: int = 1, chunk: int | None = None, seed: int = 0, **more: object
) -> tuple[Conversation, ...]:
    """Conversations of a suite that ships."""
    tokenizer: Tokenizer = WordTokenizer()
    inputs = WorkloadInputs(
        questions=make_questions(),
        seed=seed,
        tokenizer=tokenizer,
        page_size=page_size,
        chunked_prefill_size=chunk,
        **more,  # type: ignore[arg-type]  # a builder
    )
    return make_conversations(load_suite(name).workload, inputs)


def shared_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common prefix."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))


@pytest.mark.parametrize("name", suite_names())
def test_every_suite_makes_conversations(name: str) -> None:
    """Every suite that ships can be made, twice the same, with an id a conversation."""
    made = make(name, page_size=4)

    assert made
    assert made == make(name, page_size=4)
    assert len({conversation.question_id for conversation in made}) == len(made)


def test_num_questions_cuts() -> None:
    """The first conversations are kept."""
    assert make("mtbench", num_questions=3) == make("mtbench")[:3]


def test_questions_keep_their_turns() -> None:
    """A question is a chat with its own turns and the user's system prompt."""
    conversation = make("mtbench", system_prompt="Be brief.")[0]

    assert conversation.kind == "chat"
    assert conversation.system_prompt == "Be brief."
    assert [turn.text for turn in conversation.turns] == list(make_questions()[0].turns)


def test_raw_questions_carry_the_system_prompt_in_front() -> None:
    """Raw text has no place for a system prompt but the beginning."""
    conversation = make("mtbench", system_prompt="Be brief.", prompt_format="raw")[0]

    assert conversation.kind == "raw"
    assert conversation.system_prompt is None
    assert (conversation.turns[0].text or "").startswith("Be brief.\n\nQuestion 0")


def test_seed_ladder_is_the_one_of_the_second_seed() -> None:
    """Nine donors of three tokens that share one unit more each, then a test of twenty."""
    ladder = make("prefix-ladder")[0]

    assert [turn.text for turn in ladder.turns[:9]] == [
        "You xxx",
        "You are xxx",
        "You are a xxx",
        "You are a helpful xxx",
        "You are a helpful, xxx",
        "You are a helpful, respectful xxx",
        "You are a helpful, respectful and xxx",
        "You are a helpful, respectful and honest xxx",
        "You are a helpful, respectful and honest assistant xxx",
    ]
    assert {turn.max_new_tokens for turn in ladder.turns[:9]} == {3}
    assert not any(turn.measured for turn in ladder.turns[:9])
    assert ladder.turns[9].measured
    assert ladder.turns[9].max_new_tokens == 20
    assert ladder.kind == "raw"


def test_sentence_ladders_follow_the_same_rule() -> None:
    """Many more; every donor is a beginning of its test prompt and an ending."""
    ladders = make("prefix-ladder")[1:]

    assert len(ladders) == 160
    for ladder in ladders:
        test = ladder.turns[-1].text or ""
        donors = [(turn.text or "").removesuffix(" xxx") for turn in ladder.turns[:-1]]
        assert len(donors) == 9
        assert all(test.startswith(donor) and donor != test for donor in donors)
        assert donors == sorted(set(donors), key=len)


def test_ladders_depend_on_the_seed_only() -> None:
    """Another seed draws other sentences."""
    assert make("prefix-ladder", seed=0) != make("prefix-ladder", seed=1)


def test_too_few_sentences_are_refused() -> None:
    """A question file without sentences for all ladders is refused."""
    inputs = WorkloadInputs(questions=make_questions(3), seed=0)

    with pytest.raises(UsageError, match="160 ladders"):
        make_conversations(load_suite("prefix-ladder").workload, inputs)


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_paged_ladders_branch_at_page_multiples(page_size: int) -> None:
    """Donor k shares exactly k pages with the test prompt, which ends one token later."""
    for ladder in make("prefix-ladder-paged", page_size=page_size):
        prompts = [turn.token_ids or () for turn in ladder.turns]
        test = prompts[-1]

        assert len(test) == (len(prompts) - 1) * page_size + 1
        for pages, donor in enumerate(prompts[:-1], start=1):
            assert shared_length(test, donor) == pages * page_size
            assert len(donor) > pages * page_size


def test_long_ladders_stand_behind_a_lead_of_their_own() -> None:
    """All prompts of a ladder share it, no two ladders do, and the rungs are those of the others."""
    leads = set()
    for ladder in make("prefix-ladder-long")[1:]:
        texts = [turn.text or "" for turn in ladder.turns]
        lead, _, _ = texts[-1].rpartition("\n\n")
        leads.add(lead)

        assert len(lead.split(" ")) >= 300
        assert all(text.startswith(lead) for text in texts)
    assert len(leads) == 40


def test_page_edges_lie_around_pages_and_chunks() -> None:
    """Lengths are multiples and their neighbours; every prompt is sent twice."""
    made = make("page-edges", page_size=4, chunk=10)

    lengths = {len(conversation.turns[0].token_ids or ()) for conversation in made}
    pages = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
    assert lengths == pages | {9, 10, 11, 12, 19, 20, 21, 22, 29, 30, 31, 32}
    assert all(len(c.turns) == 2 and c.turns[0] == c.turns[1] for c in made)


def test_shared_prefix_is_long_and_the_same() -> None:
    """All questions stand behind one system prompt."""
    prompts = {conversation.system_prompt for conversation in make("shared-prefix")}

    assert len(prompts) == 1
    assert len((prompts.pop() or "").split()) == 200


def test_multi_turn_stays_in_one_category() -> None:
    """Four turns each, in order, with ids of their own."""
    made = make("multi-turn")

    assert {len(conversation.turns) for conversation in made} == {4}
    assert all(conversation.kind == "chat" for conversation in made)


def make_suite_text(more: str = "") -> str:
    """A small suite as TOML."""
    return (
        'name = "mine"\nversion = 1\ndescription = "d"\n'
        f'[questions]\nasset = "tiny-questions"\n[workload]\nkind = "questions"\n{more}'
    )


def test_own_suite_by_path(tmp_path: Path) -> None:
    """A TOML file of the user's is a suite too."""
    path = tmp_path / "mine.toml"
    path.write_text(make_suite_text())

    suite: Suite = load_suite(str(path))

    assert suite.name == "mine"
    assert len(suite.sha256) == 64


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (make_suite_text("max_turn = 1\n"), "did you mean max_turns"),
        (make_suite_text().replace("version = 1", "version = 0"), "version"),
        (make_suite_text().replace("version = 1\n", ""), "version is missing"),
        (make_suite_text().replace('"questions"', '"question"'), "workload"),
        ("name = ", "not a readable suite"),
        (make_suite_text("max_turns = 99999999999\n"), "max_turns: input should be less than"),
        ("x = " + "9" * 5000, "not a readable suite"),
        ("x = " + "[" * 5000, "nested too deeply"),
    ],
)
def test_broken_suites_are_refused(tmp_path: Path, text: str, words: str) -> None:
    """Unknown keys come with a suggestion."""
    path = tmp_path / "mine.toml"
    path.write_text(text)

    with pytest.raises(InputFileError, match=words):
        read_suite(path)


def test_unknown_suite_offers_the_nearest() -> None:
    """`mt-bench` is close to `mtbench`."""
    with pytest.raises(UsageError) as caught:
        load_suite("mt-bench")

    assert caught.value.hint == "did you mean mtbench?"


@pytest.mark.parametrize("form", ["chat", "raw"])
def test_a_conversation_keeps_its_own_system_prompt(form: PromptKind) -> None:
    """Unless the user gives one; behind a shared prefix it stands after what all share."""
    own = Question(question_id="1", category="c", turns=("Hi?",), system_prompt="Be short.")
    plain = Question(question_id="2", category="c", turns=("Ho?",))

    def asked(name: str, system_prompt: str | None = None) -> list[str]:
        inputs = WorkloadInputs(
            questions=(own, plain), seed=0, system_prompt=system_prompt, prompt_format=form
        )
        return [
            f"{each.system_prompt}\n\n{each.turns[0].text}".removeprefix("None\n\n")
            for each in make_conversations(load_suite(name).workload, inputs)
        ]

    shared = asked("shared-prefix")
    prefix = shared[1].removesuffix("\n\nHo?")

    assert asked("mtbench") == ["Be short.\n\nHi?", "Ho?"]
    assert asked("mtbench", "Be long.") == ["Be long.\n\nHi?", "Be long.\n\nHo?"]
    assert shared[0] == f"{prefix}\n\nBe short.\n\nHi?"
    assert len(prefix) > 100
