"""Prefix ladders: donors that each share a little more with a test prompt, then the test prompt.

Every donor leaves a branch point in a prefix tree. With keys of single tokens the slot before a
branch point holds draft KV that was computed from the donor's next token; the test prompt walks
over all of those. With bigram keys it meets none of them.
"""

import random
import re
from collections.abc import Sequence
from typing import TypeVar

from eaglebench.errors import UsageError
from eaglebench.plan.conversation import Conversation, Turn
from eaglebench.plan.questions import Question
from eaglebench.plan.suite import LadderWorkload, PagedLadderWorkload
from eaglebench.records.tokenizer import Tokenizer

_UNIT = re.compile(r"\w+|[^\w\s]")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
Piece = TypeVar("Piece")
SEED_LADDER_ID = "seed"
RECOMPUTED = 1
"""Prompt tokens that no cache hit can cover."""


def make_ladders(
    workload: LadderWorkload, questions: Sequence[Question], *, seed: int
) -> tuple[Conversation, ...]:
    """The seed's ladder, then one of every sentence drawn from the questions.

    Raises:
        UsageError: the questions hold too few sentences that are long enough.
    """
    sentences = _sentences(workload, questions)
    if len(sentences) < workload.ladders:
        raise UsageError(
            f"the questions hold {len(sentences)} sentences of {workload.test_units} words or "
            f"more; {workload.ladders} ladders need {workload.ladders}"
        )
    drawn = random.Random(seed).sample(sentences, workload.ladders)  # noqa: S311  # no secret
    ladders = [_ladder(SEED_LADDER_ID, "seed", workload.seed_sentence, workload, "")]
    leads = _leads(workload, questions, seed)
    ladders += [
        _ladder(f"ladder-{number}", question.category, text, workload, leads[number - 1])
        for number, (question, text) in enumerate(drawn, start=1)
    ]
    return tuple(ladders)


def _leads(workload: LadderWorkload, questions: Sequence[Question], seed: int) -> list[str]:
    """One text a ladder to stand in front of it; empty where the workload asks for none."""
    if not workload.lead_units:
        return [""] * workload.ladders
    texts = [turn for question in questions for turn in question.turns]
    random.Random(seed).shuffle(texts)  # noqa: S311  # no secret
    words = "\n\n".join(texts).split(" ")
    leads = [
        cut_from_stream(words, number, workload.ladders, workload.lead_units)
        for number in range(workload.ladders)
    ]
    return [" ".join(lead) + "\n\n" for lead in leads]


def make_paged_ladders(
    workload: PagedLadderWorkload,
    questions: Sequence[Question],
    *,
    tokenizer: Tokenizer,
    page_size: int,
    seed: int,
) -> tuple[Conversation, ...]:
    """Ladders whose donor k shares exactly k pages of tokens with the test prompt.

    The test prompt ends one token after its last branch point, the one that is always recomputed:
    so the slot in front of it is the one that a donor may have left wrong.
    """
    stream = question_stream(questions, tokenizer, seed=seed)
    length = workload.donors * page_size + RECOMPUTED
    ending = tokenizer.encode(f" {workload.donor_ending}")
    ladders = []
    for number in range(workload.ladders):
        prompt = cut_from_stream(stream, number, workload.ladders, length)
        donors = [
            _donor_ids(prompt, pages * page_size, ending) for pages in range(1, workload.donors + 1)
        ]
        turns = [
            Turn(token_ids=ids, max_new_tokens=workload.donor_new_tokens, measured=False)
            for ids in donors
        ]
        turns.append(Turn(token_ids=prompt, max_new_tokens=workload.test_new_tokens))
        ladders.append(
            Conversation(
                question_id=f"ladder-{number + 1}",
                category="paged-ladder",
                turns=tuple(turns),
                kind="raw",
            )
        )
    return tuple(ladders)


def question_stream(
    questions: Sequence[Question], tokenizer: Tokenizer, *, seed: int
) -> tuple[int, ...]:
    """Token ids of all turns in a shuffled order, one blank line between them."""
    texts = [turn for question in questions for turn in question.turns]
    random.Random(seed).shuffle(texts)  # noqa: S311  # no secret
    return tuple(tokenizer.encode("\n\n".join(texts)))


def cut_from_stream(
    stream: Sequence[Piece], number: int, count: int, length: int
) -> tuple[Piece, ...]:
    """The `number`-th of `count` cuts of so many pieces, spread evenly; they start apart.

    A stream that is too short is repeated.
    """
    start = number * max(1, len(stream) // count)
    needed = start + length
    repeated = tuple(stream) * -(-needed // len(stream))
    return repeated[start:needed]


def _donor_ids(prompt: Sequence[int], shared: int, ending: Sequence[int]) -> tuple[int, ...]:
    """The first `shared` tokens, then an ending whose first token is not the prompt's next one."""
    differing = ending if ending[0] != prompt[shared] else [*ending[1:], *ending]
    return (*prompt[:shared], *differing)


def _ladder(
    question_id: str, category: str, text: str, workload: LadderWorkload, lead: str
) -> Conversation:
    ends = [unit.end() for unit in _UNIT.finditer(text)][: workload.donors]
    turns = [
        Turn(
            text=f"{lead}{text[:end]} {workload.donor_ending}",
            max_new_tokens=workload.donor_new_tokens,
            measured=False,
        )
        for end in ends
    ]
    turns.append(Turn(text=lead + text, max_new_tokens=workload.test_new_tokens))
    return Conversation(question_id=question_id, category=category, turns=tuple(turns), kind="raw")


def _sentences(
    workload: LadderWorkload, questions: Sequence[Question]
) -> list[tuple[Question, str]]:
    """Beginnings of `test_units` units of all sentences that are long enough, each once."""
    found: dict[str, Question] = {}
    for question in questions:
        for turn in question.turns:
            for sentence in _SENTENCE_END.split(turn):
                units = list(_UNIT.finditer(sentence))
                if len(units) >= workload.test_units:
                    beginning = sentence[: units[workload.test_units - 1].end()].lstrip()
                    found.setdefault(beginning, question)
    return [(question, text) for text, question in found.items()]
