"""From a suite and its questions to conversations; the same inputs give the same conversations."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from eaglebench.errors import UsageError
from eaglebench.plan.conversation import Conversation, PromptKind, Turn
from eaglebench.plan.ladder import (
    cut_from_stream,
    make_ladders,
    make_paged_ladders,
    question_stream,
)
from eaglebench.plan.questions import Question
from eaglebench.plan.suite import (
    LadderWorkload,
    MultiTurnWorkload,
    PagedLadderWorkload,
    PageEdgesWorkload,
    QuestionsWorkload,
    SharedPrefixWorkload,
    Workload,
)
from eaglebench.records.tokenizer import Tokenizer

_RULES = (
    "Answer in plain language.",
    "Say so when you are not sure.",
    "Keep the answer short unless the user asks for detail.",
    "Use a list when there are several points of the same kind.",
    "Show the steps of a calculation.",
    "Do not repeat the question.",
    "Name the source of a fact when you know it.",
    "Give one example for every rule that you state.",
    "Use metric units and write dates with the year first.",
    "Be polite and do not joke about the user.",
    "Ask for what is missing when the request can't be understood.",
    "Write code with short functions and clear names.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadInputs:
    """What conversations are made from.

    Attributes:
        questions: all questions of the suite or of the user's file.
        seed: of the run; draws sentences, orders and rules.
        num_questions: most conversations; None is all of them.
        system_prompt: the user's own; None leaves the conversation's, or the template's.
        prompt_format: `raw` feeds questions as they stand, without a chat template.
        tokenizer: where lengths in tokens matter; None where no model is loaded yet.
        page_size: of the cell.
        chunked_prefill_size: of the cell; None is off.
    """

    questions: tuple[Question, ...]
    seed: int
    num_questions: int | None = None
    system_prompt: str | None = None
    prompt_format: PromptKind = "chat"
    tokenizer: Tokenizer | None = None
    page_size: int = 1
    chunked_prefill_size: int | None = None


def needs_tokenizer(workload: Workload) -> bool:
    """Whether conversations can only be made once a tokenizer is there."""
    return isinstance(workload, PagedLadderWorkload | PageEdgesWorkload)


def make_conversations(workload: Workload, inputs: WorkloadInputs) -> tuple[Conversation, ...]:
    """The conversations of one cell.

    Raises:
        UsageError: the questions are not enough for the workload.
    """
    match workload:
        case QuestionsWorkload():
            made = _questions(workload, inputs)
        case MultiTurnWorkload():
            made = _multi_turn(workload, inputs)
        case SharedPrefixWorkload():
            made = _shared_prefix(workload, inputs)
        case LadderWorkload():
            made = make_ladders(workload, inputs.questions, seed=inputs.seed)
        case PagedLadderWorkload():
            made = make_paged_ladders(
                workload,
                inputs.questions,
                tokenizer=_tokenizer(inputs),
                page_size=inputs.page_size,
                seed=inputs.seed,
            )
        case PageEdgesWorkload():
            made = _page_edges(workload, inputs)
    return made[: inputs.num_questions]


def _questions(workload: QuestionsWorkload, inputs: WorkloadInputs) -> tuple[Conversation, ...]:
    return tuple(
        _conversation(question, question.turns[: workload.max_turns], inputs)
        for question in inputs.questions
    )


def _multi_turn(workload: MultiTurnWorkload, inputs: WorkloadInputs) -> tuple[Conversation, ...]:
    """Turns of neighbouring questions of one category, `turns` at a time."""
    made = []
    for _, group in groupby(inputs.questions, key=lambda question: question.category):
        asked = [(question, turn) for question in group for turn in question.turns]
        for start in range(0, len(asked), workload.turns):
            part = asked[start : start + workload.turns]
            if len(part) < workload.turns:
                break
            turns = tuple(turn for _, turn in part)
            made.append(_conversation(part[0][0], turns, inputs))
    if not made:
        raise UsageError(f"no category has {workload.turns} turns to make a conversation of")
    # A question can begin two conversations, so ids carry the number of the conversation.
    return tuple(
        replace(conversation, question_id=f"{conversation.question_id}-{number}")
        for number, conversation in enumerate(made, start=1)
    )


def _shared_prefix(
    workload: SharedPrefixWorkload, inputs: WorkloadInputs
) -> tuple[Conversation, ...]:
    prefix = _generated_prefix(workload.prefix_words, inputs.seed)
    if inputs.system_prompt is not None:
        prefix = f"{inputs.system_prompt} {prefix}"
    own = inputs.system_prompt is None  # what a conversation has itself comes after what all share
    return tuple(
        _conversation(
            question,
            question.turns[:1],
            replace(inputs, system_prompt=_behind(prefix, question.system_prompt if own else None)),
        )
        for question in inputs.questions
    )


def _behind(prefix: str, own: str | None) -> str:
    return prefix if own is None else f"{prefix}\n\n{own}"


def _generated_prefix(num_words: int, seed: int) -> str:
    """Numbered rules in a seeded order, cut after so many words."""
    draw = random.Random(seed)  # noqa: S311  # no secret
    words: list[str] = []
    number = 0
    while len(words) < num_words:
        rules = list(_RULES)
        draw.shuffle(rules)
        for rule in rules:
            number += 1
            words += [f"{number}.", *rule.split()]
    return " ".join(words[:num_words])


def _page_edges(workload: PageEdgesWorkload, inputs: WorkloadInputs) -> tuple[Conversation, ...]:
    """Prompts of every length in question, each sent twice so that the second can hit."""
    sizes = {inputs.page_size, inputs.chunked_prefill_size or inputs.page_size}
    lengths = sorted(
        {
            multiple * size + offset
            for size in sizes
            for multiple in workload.multiples
            for offset in workload.offsets
            if multiple * size + offset >= 1
        }
    )
    stream = question_stream(inputs.questions, _tokenizer(inputs), seed=inputs.seed)
    made = []
    for number, length in enumerate(lengths):
        ids = cut_from_stream(stream, number, len(lengths), length)
        turn = Turn(token_ids=ids, max_new_tokens=workload.new_tokens)
        made.append(
            Conversation(
                question_id=f"length-{length}",
                category="page-edges",
                turns=(turn, turn),
                kind="raw",
            )
        )
    return tuple(made)


def _conversation(question: Question, turns: Sequence[str], inputs: WorkloadInputs) -> Conversation:
    """The user's system prompt takes the place of the conversation's own."""
    system = question.system_prompt if inputs.system_prompt is None else inputs.system_prompt
    is_chat = inputs.prompt_format == "chat"
    return Conversation(
        question_id=question.question_id,
        category=question.category,
        turns=tuple(Turn(text=_with_system(turn, None if is_chat else system)) for turn in turns),
        kind=inputs.prompt_format,
        system_prompt=system if is_chat else None,
    )


def _with_system(turn: str, system_prompt: str | None) -> str:
    """A raw prompt has no place for a system prompt, so it goes in front."""
    return turn if system_prompt is None else f"{system_prompt}\n\n{turn}"


def _tokenizer(inputs: WorkloadInputs) -> Tokenizer:
    if inputs.tokenizer is None:
        raise ValueError("this workload needs a tokenizer")
    return inputs.tokenizer
