"""Prefix ladders: donors that share one word more each with a test prompt, then the test prompt.

    You xxx
    You are xxx
    You are a xxx            every donor leaves a branch point in the tree
    ...
    You are a helpful, respectful and honest assistant.        the test

Under single-token keys each branch point leaves one slot whose draft KV was computed with the
donor's next token. The first ladder is that of sglang#11231; the others are made from sentences by
the same rule.
"""

import re
from collections.abc import Sequence

from eaglebench.contracts.backend import Tokenizer
from eaglebench.plan.conversation import Conversation, Turn

SEED_TEST = "You are a helpful, respectful and honest assistant."
SEED_RUNGS = (
    "You",
    "You are",
    "You are a",
    "You are a helpful",
    "You are a helpful,",
    "You are a helpful, respectful",
    "You are a helpful, respectful and",
    "You are a helpful, respectful and honest",
    "You are a helpful, respectful and honest assistant",
)
FOREIGN = " xxx"
DONOR_TOKENS = 3
TEST_TOKENS = 20
MIN_WORDS, MAX_WORDS = 6, 14
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_MIN_PAGES = 3


def seed_ladder() -> Conversation:
    """The ladder of sglang#11231."""
    return _ladder("seed", SEED_RUNGS, SEED_TEST)


def sentence_ladders(texts: Sequence[str], count: int) -> list[Conversation]:
    """Ladders from the first `count` different sentences of usable length."""
    ladders = []
    for sentence in _sentences(texts):
        words = sentence.split()
        if MIN_WORDS <= len(words) <= MAX_WORDS:
            rungs = [" ".join(words[:n]) for n in range(1, len(words))]
            ladders.append(_ladder(f"sentence-{len(ladders) + 1}", rungs, sentence))
        if len(ladders) == count:
            break
    return ladders


def paged_ladders(
    texts: Sequence[str], count: int, *, page_size: int, tokenizer: Tokenizer
) -> list[Conversation]:
    """Ladders whose donors leave the test prompt exactly at page multiples, in tokens."""
    foreign = tokenizer.encode(FOREIGN) * page_size
    ladders = []
    for text in texts:
        ids = tokenizer.encode(text)
        num_pages = len(ids) // page_size
        if num_pages < _MIN_PAGES:
            continue
        test = ids[: num_pages * page_size + 1]
        donors = [ids[: n * page_size] + foreign for n in range(1, num_pages + 1)]
        turns = [_donor(token_ids=tuple(donor)) for donor in donors]
        turns.append(Turn(token_ids=tuple(test), max_new_tokens=TEST_TOKENS))
        ladders.append(_conversation(f"paged-{len(ladders) + 1}", turns))
        if len(ladders) == count:
            break
    return ladders


def _sentences(texts: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for text in texts:
        for sentence in _SENTENCE_END.split(" ".join(text.split())):
            found.setdefault(sentence)
    return list(found)


def _ladder(name: str, rungs: Sequence[str], test: str) -> Conversation:
    turns = [_donor(text=rung + FOREIGN) for rung in rungs]
    turns.append(Turn(text=test, max_new_tokens=TEST_TOKENS))
    return _conversation(name, turns)


def _donor(text: str | None = None, token_ids: tuple[int, ...] | None = None) -> Turn:
    return Turn(text=text, token_ids=token_ids, max_new_tokens=DONOR_TOKENS, measured=False)


def _conversation(name: str, turns: Sequence[Turn]) -> Conversation:
    return Conversation(question_id=name, category="ladder", kind="raw", turns=tuple(turns))
