"""What is learned from and what is held out, in which order it is seen, and its most used tokens.

What is measured is kept out of what is learned: no words in a row in common.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from eaglebench.errors import UsageError
from eaglebench.training.conversation import Conversation

_WORD = re.compile(r"\w+")
_BUCKET = 64
"""Conversations sorted by length at a time, so that a batch pads little and still varies."""
_HASH_SPACE = 2**64


class OverlapFilter:
    """Finds texts that share `num_words` words in a row with one of the excluded texts.

    Words are compared without case and punctuation. Excluded texts of fewer words exclude nothing.
    """

    def __init__(self, excluded: Iterable[str], num_words: int) -> None:
        self._num_words = num_words
        self._grams = {gram for text in excluded for gram in _grams(text, num_words)}

    def shared(self, text: str) -> str | None:
        """The first words that `text` has in common with an excluded text; None if none."""
        shared = (gram for gram in _grams(text, self._num_words) if gram in self._grams)
        return next((" ".join(gram) for gram in shared), None)


def _grams(text: str, num_words: int) -> Iterable[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return zip(*(words[start:] for start in range(num_words)), strict=False)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Conversations, each once.

    Attributes:
        learned: what is learned from.
        held_out: what the figures are measured on.
        num_excluded: left out because they share words with an excluded text.
        num_too_long: left out because they are longer than one update may be.
    """

    learned: tuple[Conversation, ...]
    held_out: tuple[Conversation, ...]
    num_excluded: int
    num_too_long: int

    @property
    def num_tokens(self) -> int:
        """Tokens that are learned from."""
        return sum(len(each.ids) for each in self.learned)


def make_corpus(
    conversations: Iterable[Conversation],
    *,
    overlap: OverlapFilter,
    decode: Callable[[Sequence[int]], str],
    held_out_share: float,
    longest: int,
) -> Corpus:
    """Sort conversations of at most `longest` tokens into what is learned, held out, and left out.

    Repeated ones count once, those without an answer not at all. A share is held out by a digest of
    the tokens: the same conversation is held out of every corpus.

    Raises:
        UsageError: nothing is left to learn from, or nothing to measure on.
    """
    learned: list[Conversation] = []
    held_out: list[Conversation] = []
    seen: set[tuple[int, ...]] = set()
    num_excluded = num_too_long = 0
    for each in conversations:
        if each.ids in seen or not each.num_answer_tokens:
            continue
        seen.add(each.ids)
        if len(each.ids) > longest:
            num_too_long += 1
        elif any(overlap.shared(decode(span)) for span in _turns(each)):
            num_excluded += 1
        else:
            (held_out if _place(each) < held_out_share else learned).append(each)
    if not learned or not held_out:
        raise UsageError(
            f"{len(learned)} conversations to learn from and {len(held_out)} to measure on "
            f"({num_excluded} left out for words they share with excluded texts, {num_too_long} "
            "for their length); at least one of each is needed",
            hint="write more conversations, or hold out a larger share",
        )
    return Corpus(tuple(learned), tuple(held_out), num_excluded, num_too_long)


def batches(
    conversations: Sequence[Conversation], batch_tokens: int, seed: int
) -> Iterator[list[Conversation]]:
    """Batches without an end, pass after pass over all conversations in another order.

    A batch has at most `batch_tokens`, padding included; a longer conversation stands alone.
    """
    rng = Random(seed)  # noqa: S311  # no secret depends on it
    order = list(conversations)
    while True:
        rng.shuffle(order)
        for start in range(0, len(order), _BUCKET):
            bucket = sorted(order[start : start + _BUCKET], key=lambda each: len(each.ids))
            ready = list(_packed(bucket, batch_tokens))
            rng.shuffle(ready)
            yield from ready


def _packed(ascending: Iterable[Conversation], batch_tokens: int) -> Iterator[list[Conversation]]:
    batch: list[Conversation] = []
    for each in ascending:
        rows = [*batch, each]
        if batch and len(rows) * len(each.ids) > batch_tokens:
            yield batch
            rows = [each]
        batch = rows
    yield batch


def _turns(conversation: Conversation) -> Iterator[tuple[int, ...]]:
    """Token ids of user turns, with the template around them, and of answers."""
    position = 0
    for start, end in conversation.answers:
        yield conversation.ids[position:start]
        yield conversation.ids[start:end]
        position = end


def _place(conversation: Conversation) -> float:
    """A number in [0, 1) that the tokens alone decide."""
    return int.from_bytes(conversation.digest[:8], "big") / _HASH_SPACE


def choose_vocabulary(
    counts: Counter[int], *, size: int, vocab_size: int, always: Sequence[int]
) -> Tensor:
    """[size] int64: the most frequent tokens of answers, ascending; all tokens if there are no more.

    Those that are always taken, such as those that end an answer, need not be frequent.
    """
    # Of equal counts the lowest id wins; ids that never occur fill what is left.
    ranked = sorted(range(vocab_size), key=lambda token: (-counts[token], token))
    return torch.tensor(sorted(list(dict.fromkeys([*always, *ranked]))[:size]))


def count_answer_tokens(conversations: Iterable[Conversation]) -> Counter[int]:
    """How often each token stands in an answer."""
    counts: Counter[int] = Counter()
    for each in conversations:
        for start, end in each.answers:
            counts.update(each.ids[start:end])
    return counts


def coverage_of(counts: Counter[int], target_ids: Iterable[int]) -> float:
    """Share of all counted tokens that are among `target_ids`; 1 where nothing was counted."""
    total = counts.total()
    return sum(counts[token] for token in target_ids) / total if total else 1.0
