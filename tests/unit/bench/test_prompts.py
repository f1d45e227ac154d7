"""The digest of what a question asks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from eaglebench.bench.prompts import question_digest
from eaglebench.plan.replay import StoredTurn
from tests.fakes import ByteTokenizer, Plant, ScriptedRuntime
from tests.sessions import make_folder, make_session, make_talk

TALK = make_talk("q", "Tell me about item 1.", "And then?")


class OtherTemplate(ByteTokenizer):
    """A chat template that was edited where it renders an earlier answer, and nowhere else."""

    def render_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """`[assistant]` instead of `<assistant>` in front of answers that were given."""
        text = bytes(super().render_chat(messages)).decode()
        return self.encode(text.replace("<assistant>So", "[assistant]So"))


class OtherIds(ByteTokenizer):
    """A tokenizer with other ids for the same text."""

    def encode(self, text: str) -> list[int]:
        """Each byte's complement."""
        return [255 - byte for byte in text.encode()]


@pytest.mark.parametrize(
    "other",
    [
        make_talk("q", "Tell me about item 2.", "And then?"),
        make_talk("q", "Tell me about item 1.", "And now?"),
        make_talk("q", "Tell me about item 1."),
        make_talk("q", "Tell me about item 1.", "And then?", kind="raw"),
        replace(TALK, system_prompt="Be brief."),
    ],
)
def test_whatever_a_question_asks_reaches_its_digest(other: object) -> None:
    """A text of any turn, the number of turns, the system prompt, chat or raw."""
    digest = question_digest(TALK, ByteTokenizer())

    assert digest == question_digest(TALK, ByteTokenizer())
    assert question_digest(other, ByteTokenizer()) != digest  # type: ignore[arg-type]  # of pytest


def test_template_and_tokenizer_reach_the_digest() -> None:
    """Also a template that differs only behind the first answer."""
    digests = {
        question_digest(TALK, tokenizer)
        for tokenizer in (ByteTokenizer(), OtherTemplate(), OtherIds())
    }

    assert len(digests) == 3


def test_another_answer_is_no_other_question(tmp_path: Path) -> None:
    """The second prompts differ, since they hold the arms' own answers; the digests agree."""
    runtime = ScriptedRuntime({"radix": [Plant(word="item", side="target")]})
    folder = make_folder(tmp_path)
    make_session(runtime, folder, [TALK]).run()

    turns = folder.turns()
    assert len({tuple(turn.prompt_token_ids) for turn in turns if turn.turn == 1}) == 2
    assert {turn.question_sha256 for turn in turns} == {question_digest(TALK, ByteTokenizer())}


def test_a_replay_asks_what_it_stored() -> None:
    """Stored prompts and answers are fed as they stand, so others are another question."""
    stored = {
        ("q", turn): StoredTurn(prompt_token_ids=(1, 2, turn), output_token_ids=(3,))
        for turn in (0, 1)
    }
    changed = stored | {("q", 1): replace(stored["q", 1], prompt_token_ids=(1, 2, 9))}

    answered = stored | {("q", 1): replace(stored["q", 1], output_token_ids=(4,))}
    digests = [
        question_digest(TALK, ByteTokenizer(), each) for each in (stored, changed, answered, None)
    ]

    assert len(set(digests)) == 4
