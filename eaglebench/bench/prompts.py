"""The prompts of a conversation, and the one digest of what a question asks.

The prompt of a later chat turn holds the arm's own earlier answers, so its ids are no fact of the
question alone. The digest is made of prompts in which every earlier answer is replaced by the same
stand-in: texts, system prompt, chat template and tokenizer all reach it, answers do not. Other
answers to the same question are a difference of results; another digest is another question.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from eaglebench.plan.conversation import Conversation, Turn
from eaglebench.plan.replay import Replay
from eaglebench.records.tokenizer import Tokenizer

STAND_IN_ANSWER = "So it is."
"""What stands in for every answer in the digest of a question."""


def question_digest(
    conversation: Conversation, tokenizer: Tokenizer, replay: Replay | None = None
) -> str:
    """SHA-256 over the token ids of all prompts of a conversation, answers replaced.

    A prompt that a replay stores is fed as it stands, so it enters as it stands; the tokens that a
    replay takes as the target's choices enter as well, since they are given and no answer.

    Raises:
        UsageError: the chat template refuses the conversation.
    """
    digest = sha256()
    for turn in range(len(conversation.turns)):
        stored = (replay or {}).get((conversation.question_id, turn))
        prompt = stored.prompt_token_ids if stored is not None else None
        if prompt is None:
            prompt = prompt_token_ids(conversation, turn, [STAND_IN_ANSWER] * turn, tokenizer)
        given = [stored.output_token_ids] if stored is not None else []
        for token_ids in (prompt, *given):
            digest.update((",".join(map(str, token_ids)) + ";").encode())
    return digest.hexdigest()


def prompt_token_ids(
    conversation: Conversation, turn: int, answers: Sequence[str], tokenizer: Tokenizer
) -> tuple[int, ...]:
    """The prompt of a turn, given the answers to those before it.

    Raises:
        UsageError: the chat template refuses the conversation.
    """
    current = conversation.turns[turn]
    if current.token_ids is not None:
        return current.token_ids
    if conversation.kind == "raw":
        return tuple(tokenizer.encode_prompt(current.text or ""))
    return tuple(tokenizer.render_chat(_messages(conversation, turn, answers)))


def first_prompt(
    conversation: Conversation, tokenizer: Tokenizer, replay: Replay | None = None
) -> tuple[int, ...]:
    """The prompt of the first turn: as a replay stores it, or made."""
    stored = (replay or {}).get((conversation.question_id, 0))
    if stored is not None and stored.prompt_token_ids is not None:
        return stored.prompt_token_ids
    return prompt_token_ids(conversation, 0, (), tokenizer)


def _messages(
    conversation: Conversation, turn: int, answers: Sequence[str]
) -> list[Mapping[str, str]]:
    messages: list[Mapping[str, str]] = []
    if conversation.system_prompt is not None:
        messages.append({"role": "system", "content": conversation.system_prompt})
    earlier: list[Turn] = list(conversation.turns[:turn])
    for said, answered in zip(earlier, answers, strict=False):
        messages.append({"role": "user", "content": said.text or ""})
        messages.append({"role": "assistant", "content": answered})
    messages.append({"role": "user", "content": conversation.turns[turn].text or ""})
    return messages
