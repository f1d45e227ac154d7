"""What is learned from, what is held out, what is left out, and in which order."""

from itertools import islice
from pathlib import Path

import pytest

from eaglebench.errors import InputFileError, UsageError
from eaglebench.training.conversation import (
    ChatFrame,
    Conversation,
    append_conversations,
    read_conversations,
)
from eaglebench.training.corpus import (
    Corpus,
    OverlapFilter,
    batches,
    choose_vocabulary,
    count_answer_tokens,
    coverage_of,
    make_corpus,
)
from tests.engines import byte_ids, byte_text
from tests.unit.training.lessons import ASSISTANT, BOS, EOS, USER, exchange

FRAME = ChatFrame((BOS, USER), (ASSISTANT,), (EOS, USER))
MANY = [exchange(f"question {n}", f"answer {n}" * (1 + n % 5)) for n in range(200)]


def encode(text: str) -> list[int]:
    """Bytes."""
    return list(byte_ids(text))


def corpus(conversations: list[Conversation], *excluded: str, longest: int = 2048) -> Corpus:
    """A corpus that holds out a fifth and shares no four words with `excluded`."""
    return make_corpus(
        conversations,
        overlap=OverlapFilter(excluded, 4),
        decode=byte_text,
        held_out_share=0.2,
        longest=longest,
    )


def test_each_conversation_counts_once_on_one_side() -> None:
    """Learned and held out are disjoint and together all; repeated ones count once."""
    made = corpus([*MANY, *MANY])
    learned, held_out = set(made.learned), set(made.held_out)

    assert learned.isdisjoint(held_out)
    assert learned | held_out == set(MANY)
    assert len(made.learned) + len(made.held_out) == len(MANY)
    assert 20 <= len(held_out) <= 60


def test_a_conversation_is_held_out_of_every_corpus() -> None:
    """The side depends on the conversation's tokens and not on what else is there."""
    whole, half = corpus(MANY), corpus(MANY[::2])

    assert set(half.held_out) == set(whole.held_out) & set(MANY[::2])


def test_shared_words_exclude_a_conversation() -> None:
    """Four words in a row, in a user turn or an answer, whatever their case and punctuation."""
    asked = exchange("Please compose a travel blog now", "No.")
    answered = exchange("Hello", "I shall compose -- a travel, blog.")
    near = exchange("compose a travel", "blog about it")
    made = corpus([*MANY, asked, answered, near], "Compose a TRAVEL blog")

    kept = {*made.learned, *made.held_out}
    assert made.num_excluded == 2
    assert near in kept
    assert not {asked, answered} & kept


def test_long_conversations_are_left_out_and_counted() -> None:
    """What does not fit into one update is not cut."""
    made = corpus(MANY, longest=40)

    assert made.num_too_long == sum(len(each.ids) > 40 for each in MANY) > 0
    assert max(len(each.ids) for each in made.learned) <= 40


def test_a_corpus_with_nothing_on_one_side_is_refused() -> None:
    """The error says how many there are on each side."""
    with pytest.raises(UsageError, match=r"0 conversations to learn from and 0 to measure on"):
        corpus([])


def test_batches_hold_all_of_a_pass_within_their_budget() -> None:
    """Every conversation once a pass, padded sizes within the budget, passes in other orders."""
    order = batches(MANY, 300, seed=1)
    drawn: list[Conversation] = []
    passes: list[list[Conversation]] = []
    while len(passes) < 2:
        batch = next(order)
        assert len(batch) == 1 or len(batch) * max(len(each.ids) for each in batch) <= 300
        drawn += batch
        if len(drawn) == len(MANY):
            passes.append(drawn)
            drawn = []

    assert set(passes[0]) == set(passes[1]) == set(MANY)
    assert passes[0] != passes[1]


def test_the_order_depends_on_the_seed_alone() -> None:
    """The same seed gives the same batches, so a stopped training goes on with the next."""
    first, again = (list(islice(batches(MANY, 300, seed=7), 30)) for _ in range(2))

    assert first == again
    assert first != list(islice(batches(MANY, 300, seed=8), 30))


def test_conversations_survive_a_file(tmp_path: Path) -> None:
    """What is appended is read again; a last line that was cut off is left out."""
    path = tmp_path / "c.jsonl"
    append_conversations(path, MANY[:3])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"ids": [1, 2')

    assert list(read_conversations(path, FRAME, encode)) == MANY[:3]


def test_messages_are_put_into_the_frame(tmp_path: Path) -> None:
    """Texts of others become token ids with the template around them, answers with their ends."""
    path = tmp_path / "c.jsonl"
    path.write_text(
        '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]}'
    )
    (read,) = read_conversations(path, FRAME, encode)

    assert read.ids == (BOS, USER, *b"Hi", ASSISTANT, *b"Yo", EOS, USER)
    assert [read.ids[start:end] for start, end in read.answers] == [(*b"Yo", EOS)]


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        '{"ids": [1]}',
        '{"ids": [1], "answers": [[0, 9]]}',
        '{"messages": [{"role": "assistant", "content": "?"}]}',
        "not json",
    ],
)
def test_a_line_that_is_no_conversation_is_named(tmp_path: Path, line: str) -> None:
    """File and line stand in the error."""
    path = tmp_path / "c.jsonl"
    path.write_text(f"{line}\n")

    with pytest.raises(InputFileError, match=r"c\.jsonl:1: no conversation"):
        list(read_conversations(path, FRAME, encode))


def test_the_vocabulary_is_what_answers_use_most() -> None:
    """The most frequent tokens of answers, ends included; coverage is their share."""
    spoken = count_answer_tokens([exchange("zzzz", "aab")])
    chosen = choose_vocabulary(spoken, size=2, vocab_size=260, always=(EOS,)).tolist()

    assert chosen == [ord("a"), EOS]
    assert coverage_of(spoken, chosen) == 3 / 4
    everything = choose_vocabulary(spoken, size=8192, vocab_size=260, always=()).tolist()
    assert everything == list(range(260))
    assert coverage_of(spoken, everything) == 1.0
