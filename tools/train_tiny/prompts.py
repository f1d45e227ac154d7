"""The questions of the tiny suite: what the pair has not seen, in families that share beginnings.

The questions of a family part in the middle of a word that the answer repeats, so that a cache
entry which belongs to the other question costs the head a guess.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

from tools.train_tiny.text import echo, echo_twice, facts, made_up_word, made_up_words

FAMILY_SIZE = 3


def echo_turns(rng: random.Random, beginning: str) -> list[str]:
    """Words to repeat after a beginning that the family shares, then others twice."""
    words = f"{beginning}{made_up_word(rng, 3, 5)} {made_up_words(rng, 3)}"
    return [echo(words)[0], echo_twice(made_up_words(rng, 2))[0]]


def twice_turns(rng: random.Random, beginning: str) -> list[str]:
    """Words to repeat twice after a beginning that the family shares, then others once."""
    words = f"{beginning}{made_up_word(rng, 3, 5)} {made_up_word(rng)}"
    return [echo_twice(words)[0], echo(made_up_words(rng, 4))[0]]


def fact_turns(rng: random.Random, stated: str) -> list[str]:
    """Facts whose last code word begins alike in the family."""
    first = f"{stated}{made_up_word(rng, 3, 5)}. List all codes."
    return [first, "Say all of it again."]


def families(rng: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Category and turns of every question."""
    for category in ("echo", "facts", "twice", "facts"):
        beginning = _beginning(rng, category)
        for _ in range(FAMILY_SIZE):
            yield category, _TURNS[category](rng, beginning)


def _beginning(rng: random.Random, category: str) -> str:
    """What the questions of a family share; it ends inside a made-up word."""
    if category == "facts":
        stated = " ".join(fact.sentence() for fact in facts(rng, 2))
        return stated.removesuffix(".")[:-2]
    words = {"echo": 3, "twice": 2}[category]
    return f"{made_up_words(rng, words)} {made_up_word(rng, 2, 3)}"


_TURNS = {"echo": echo_turns, "facts": fact_turns, "twice": twice_turns}


def save_prompts(path: Path, seed: int) -> None:
    """Write the question file."""
    with path.open("w", encoding="utf-8") as file:
        for number, (category, turns) in enumerate(families(random.Random(seed)), 1):
            line = {"question_id": number, "category": category, "turns": turns}
            file.write(json.dumps(line) + "\n")
