"""Numbers with nouns and units."""

import pytest

from eaglebench.records.words import counted, doing, sized


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [(0, "turn", "0 turns"), (1, "turn", "1 turn"), (2, "pass", "2 passes"), (1, "pass", "1 pass")],
)
def test_a_number_agrees_with_its_noun(number: int, noun: str, words: str) -> None:
    """One is one."""
    assert counted(number, noun) == words


@pytest.mark.parametrize(
    ("num_bytes", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (48_900, "48.9 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (25_276_059_648, "25.3 GB"),
        (4_500_000_000_000, "4.5 TB"),
        (4_500_000_000_000_000, "4500.0 TB"),
    ],
)
def test_a_size_is_told_in_three_or_four_digits(num_bytes: int, words: str) -> None:
    """In decimal units, and never as 1000.0 of one."""
    assert sized(num_bytes) == words


def test_a_verb_agrees_with_its_number() -> None:
    """In what verdicts and refusals say."""
    assert doing(1, "question", "ask") == "1 question asks"
    assert doing(2, "question", "ask") == "2 questions ask"
    assert doing(1, "turn", "have") == "1 turn has"
    assert doing(1, "question", "were") == "1 question was"
