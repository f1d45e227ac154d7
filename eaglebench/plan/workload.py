"""Conversations of a suite, made from its questions by a fixed rule."""

from collections.abc import Callable
from dataclasses import dataclass

from eaglebench.contracts.backend import Tokenizer
from eaglebench.contracts.knobs import EngineKnobs
from eaglebench.plan.conversation import Conversation, PromptKind, Turn
from eaglebench.plan.ladder import paged_ladders, seed_ladder, sentence_ladders
from eaglebench.plan.questions import Question
from eaglebench.plan.suite import Suite

LONG_SYSTEM_PROMPT = (
    "You are a patient assistant at the help desk of a public library. You answer questions about "
    "books, opening hours, borrowing rules, reading groups and the building. You keep answers "
    "short, you say when you do not know something, and you never invent titles, names or dates. "
    "If somebody asks for an opinion, give two sides. If somebody asks for a list, number it. "
    "If a question has nothing to do with the library, answer it all the same, politely."
)
TURNS_PER_CONVERSATION = 6
EDGE_PAGES = (1, 2, 3)
EDGE_OFFSETS = (-1, 0, 1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRequest:
    """What a workload maker may look at."""

    suite: Suite
    questions: tuple[Question, ...]
    num_questions: int | None
    prompt_format: PromptKind
    system_prompt: str | None
    knobs: EngineKnobs
    tokenizer: Tokenizer


def make_conversations(request: WorkloadRequest) -> list[Conversation]:
    """All conversations of one cell, in the order they run."""
    made = _MAKERS[request.suite.workload](request)
    return made if request.num_questions is None else made[: request.num_questions]


def needs_cell(suite: Suite) -> bool:
    """Whether prompts depend on the cell's page or chunk size."""
    return suite.workload in {"prefix-ladder-paged", "page-edges"}


def _questions(request: WorkloadRequest) -> list[Conversation]:
    return [_from_question(request, q, request.system_prompt) for q in request.questions]


def _shared_prefix(request: WorkloadRequest) -> list[Conversation]:
    system = request.system_prompt or LONG_SYSTEM_PROMPT
    return [_from_question(request, q, system) for q in request.questions]


def _from_question(
    request: WorkloadRequest, question: Question, system_prompt: str | None
) -> Conversation:
    return Conversation(
        question_id=question.question_id,
        category=question.category,
        kind=request.prompt_format,
        turns=tuple(Turn(text=text) for text in question.turns),
        system_prompt=system_prompt,
    )


def _multi_turn(request: WorkloadRequest) -> list[Conversation]:
    texts = [turn for question in request.questions for turn in question.turns]
    groups = [
        texts[start : start + TURNS_PER_CONVERSATION]
        for start in range(0, len(texts), TURNS_PER_CONVERSATION)
    ]
    return [
        Conversation(
            question_id=f"talk-{number}",
            category="multi-turn",
            kind=request.prompt_format,
            turns=tuple(Turn(text=text) for text in group),
            system_prompt=request.system_prompt,
        )
        for number, group in enumerate(groups, start=1)
    ]


def _ladder(request: WorkloadRequest) -> list[Conversation]:
    return [seed_ladder(), *sentence_ladders(_texts(request), request.suite.count)]


def _paged_ladder(request: WorkloadRequest) -> list[Conversation]:
    return paged_ladders(
        _texts(request),
        request.suite.count,
        page_size=request.knobs.page_size,
        tokenizer=request.tokenizer,
    )


def _page_edges(request: WorkloadRequest) -> list[Conversation]:
    """Prompts of n * page and n * chunk tokens and their neighbours, each sent twice."""
    stream = [token for text in _texts(request) for token in request.tokenizer.encode(text)]
    sizes = {request.knobs.page_size, request.knobs.chunked_prefill_size or 64}
    lengths = {n * size + off for size in sizes for n in EDGE_PAGES for off in EDGE_OFFSETS}
    conversations = []
    for length in sorted(lengths):
        if not 1 <= length <= len(stream):
            continue
        # every length has a text of its own, so that only its own resend can hit
        start = (len(conversations) * max(lengths)) % max(1, len(stream) - length)
        turn = Turn(token_ids=tuple(stream[start : start + length]))
        conversations.append(
            Conversation(
                question_id=f"length-{length}",
                category="page-edges",
                kind="raw",
                turns=(turn, turn),
            )
        )
    return conversations


def _texts(request: WorkloadRequest) -> list[str]:
    return [turn for question in request.questions for turn in question.turns]


_MAKERS: dict[str, Callable[[WorkloadRequest], list[Conversation]]] = {
    "questions": _questions,
    "shared-prefix": _shared_prefix,
    "multi-turn": _multi_turn,
    "prefix-ladder": _ladder,
    "prefix-ladder-paged": _paged_ladder,
    "page-edges": _page_edges,
}
