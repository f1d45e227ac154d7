"""Turns conversations into requests, one turn at a time, as answers come in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from eaglebench.bench.prompts import prompt_token_ids
from eaglebench.plan.conversation import Conversation
from eaglebench.plan.replay import Replay, StoredTurn
from eaglebench.records.generation import GenerationRequest, Sampling
from eaglebench.records.observation import RequestObservation
from eaglebench.records.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRule:
    """How answers are drawn and what ends them, where the turn itself says nothing.

    The coin key of `sampling` names the seed; question and turn are added to it.
    """

    max_new_tokens: int
    stop_token_ids: tuple[int, ...]
    stop_strings: tuple[str, ...]
    sampling: Sampling | None = None


@dataclass(slots=True)
class _Talk:
    """One conversation under way."""

    conversation: Conversation
    next_turn: int = 0
    is_running: bool = False
    answers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which turn a request belongs to, and its prompt."""

    conversation: Conversation
    turn: int
    prompt_token_ids: tuple[int, ...]


class Feed:
    """The requests of some conversations: the next turn of each when the one before is answered.

    Iterating gives a request, None while every conversation waits for an answer, and ends when
    all turns have been asked. Under a replay prompts are the stored ones, where they were stored,
    and each answer is as long as the stored one.
    """

    def __init__(
        self,
        conversations: Sequence[Conversation],
        tokenizer: Tokenizer,
        rule: AnswerRule,
        replay: Replay | None = None,
    ) -> None:
        self._talks = {talk.question_id: _Talk(talk) for talk in conversations}
        self._tokenizer = tokenizer
        self._rule = rule
        self._replay = replay or {}
        self.asked: dict[str, Asked] = {}

    @property
    def replayed_tokens(self) -> dict[str, Sequence[int]] | None:
        """What is fed as the target's choices, by request; None without a replay."""
        named: dict[str, Sequence[int]] = {
            request_name(talk.conversation.question_id, turn): stored.output_token_ids
            for talk in self._talks.values()
            for turn in range(_length(talk))
            if (stored := self._stored(talk, turn)) is not None
        }
        return named or None

    def __iter__(self) -> Iterator[GenerationRequest | None]:
        while True:
            open_talks = [t for t in self._talks.values() if t.next_turn < _length(t)]
            ready = [talk for talk in open_talks if not talk.is_running]
            if ready:
                yield self._ask(ready[0])
            elif open_talks:
                yield None
            else:
                return

    def answer(self, observation: RequestObservation) -> Asked:
        """Take an answer; the conversation's next turn can be asked from now on.

        A turn that could not run ends its conversation: later prompts would lack an answer.
        """
        asked = self.asked[observation.request_id]
        talk = self._talks[asked.conversation.question_id]
        talk.is_running = False
        is_chat = asked.conversation.kind == "chat"
        if is_chat and talk.next_turn < _length(talk):
            talk.answers.append(self._tokenizer.decode(observation.output_token_ids))
        if is_chat and observation.error is not None:
            talk.next_turn = _length(talk)
        return asked

    def _ask(self, talk: _Talk) -> GenerationRequest:
        turn = talk.conversation.turns[talk.next_turn]
        stored = self._stored(talk, talk.next_turn)
        prompt = stored.prompt_token_ids if stored is not None else None
        if prompt is None:
            prompt = prompt_token_ids(
                talk.conversation, talk.next_turn, talk.answers, self._tokenizer
            )
        limit = turn.max_new_tokens or self._rule.max_new_tokens
        request_id = request_name(talk.conversation.question_id, talk.next_turn)
        self.asked[request_id] = Asked(talk.conversation, talk.next_turn, prompt)
        talk.next_turn += 1
        talk.is_running = True
        return GenerationRequest(
            request_id=request_id,
            prompt_token_ids=prompt,
            max_new_tokens=limit if stored is None else len(stored.output_token_ids),
            stop_token_ids=self._rule.stop_token_ids,
            stop_strings=self._rule.stop_strings,
            sampling=self._sampling(request_id),
        )

    def _sampling(self, request_id: str) -> Sampling | None:
        """Coins of this question and turn; every arm and batch draws the same."""
        sampling = self._rule.sampling
        if sampling is None:
            return None
        return replace(sampling, coin_key=f"{sampling.coin_key}/{request_id}")

    def _stored(self, talk: _Talk, turn: int) -> StoredTurn | None:
        return self._replay.get((talk.conversation.question_id, turn))


def request_name(question_id: str, turn: int) -> str:
    """The id of a turn's request, also under a replay."""
    return f"{question_id}/{turn}"


def _length(talk: _Talk) -> int:
    return len(talk.conversation.turns)
