"""Keeps what is measured out of what is learned from: no words in a row in common."""

import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+")


class OverlapFilter:
    """Finds texts that share `num_words` words in a row with one of the excluded texts.

    Words are compared without case and punctuation. Excluded texts of fewer words exclude nothing.
    """

    def __init__(self, excluded: Iterable[str], num_words: int) -> None:
        self._num_words = num_words
        self._grams: set[tuple[str, ...]] = set()
        for text in excluded:
            self._grams.update(_grams(_words(text), num_words))

    def shared(self, text: str) -> str | None:
        """The first words that `text` has in common with an excluded text; None if none."""
        for gram in _grams(_words(text), self._num_words):
            if gram in self._grams:
                return " ".join(gram)
        return None


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _grams(words: list[str], num_words: int) -> Iterable[tuple[str, ...]]:
    shifted = (words[start:] for start in range(num_words))
    return zip(*shifted, strict=False)
