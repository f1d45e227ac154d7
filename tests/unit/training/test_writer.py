"""Conversations that a target has with itself."""

import itertools
from dataclasses import replace

import torch

from eaglebench.model.tokenizer import HubTokenizer
from eaglebench.training.conversation import ChatFrame, Conversation, read_frame
from eaglebench.training.recipe import TrainingRecipe
from eaglebench.training.writer import ConversationWriter, Openings
from tests.engines import TINY, byte_ids, tiny_models
from tests.unit.training.lessons import greedy_answer

SEED = 5
LIMITS = TrainingRecipe(user_tokens=24, answer_tokens=20, two_turn_share=0.5, seed=SEED)
OPENINGS = Openings((byte_ids("Say again:"), byte_ids("W")), (byte_ids("Say all"),))


def frame() -> ChatFrame:
    """The tiny pair's."""
    return read_frame(HubTokenizer.load(TINY))


def write(numbers: range, batch: int) -> dict[int | None, Conversation]:
    """Conversations by number."""
    writer = ConversationWriter(tiny_models().target, frame(), OPENINGS, LIMITS)
    return {each.number: each for each in writer.write(iter(numbers), batch)}


def test_the_frame_is_the_template_without_its_texts() -> None:
    """Lead, the piece before an answer and the piece before the next user turn, as token ids."""
    bos, eos, user, assistant = range(256, 260)

    assert frame() == ChatFrame((bos, user), (assistant,), (eos, user))


def test_a_number_is_one_conversation_however_it_is_written() -> None:
    """Alone, beside others, or in a later call: the same number gives the same tokens."""
    together = write(range(6), 6)

    assert sorted(together, key=str) == list(range(6))
    assert write(range(6), 1) == together
    assert write(range(4, 6), 2) == {4: together[4], 5: together[5]}


def test_conversations_are_openings_frames_and_greedy_answers() -> None:
    """Each begins with an opening, has one or two answers, and every answer is the target's own."""
    written = list(write(range(6), 3).values())

    assert {len(each.answers) for each in written} == {1, 2}
    assert len({each.ids for each in written}) == len(written)
    for each in written:
        assert any(each.ids[2 : 2 + len(opening)] == opening for opening in OPENINGS.first)
        for start, end in each.answers:
            assert 0 < end - start <= LIMITS.answer_tokens
            assert each.ids[start - 1 : start] == frame().to_answer
            wanted = greedy_answer(tiny_models().target, each.ids[:start], end - start)
            assert each.ids[start:end] == wanted


def test_numbers_are_drawn_only_as_rows_get_free() -> None:
    """An endless supply of numbers is read as far as it is needed."""
    numbers = itertools.count()
    writer = ConversationWriter(tiny_models().target, frame(), OPENINGS, LIMITS)
    first = next(iter(writer.write(numbers, 2)))

    assert first.number in {0, 1}
    assert next(numbers) == 2


def test_user_turns_differ_by_seed() -> None:
    """Another seed writes other conversations."""
    target = tiny_models(torch.float64).target
    other = ConversationWriter(target, frame(), OPENINGS, replace(LIMITS, seed=SEED + 1))

    assert {each.ids for each in other.write(iter(range(4)), 4)}.isdisjoint(
        each.ids for each in write(range(4), 4).values()
    )
