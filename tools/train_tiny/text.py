"""Synthetic conversations a few-layer byte model can learn, with words that come back later.

Half of them ask for words back that nobody has seen, once or twice over; the others state facts and
ask for them. Target and head both have to look back, so a head whose KV is wrong guesses worse.
"""

import random
from dataclasses import dataclass

COLOURS = ["amber", "azure", "coral", "ivory", "olive", "plum", "ruby", "teal"]
THINGS = ["lamp", "gate", "boat", "drum", "kite", "vase", "clock", "chair"]
PLACES = ["the hall", "the yard", "the attic", "the shop", "the barn", "the dock"]
NAMES = ["Mira", "Tomas", "Ines", "Jonas", "Petra", "Oskar", "Lena", "Viktor"]
ECHO_SHARE = 0.5
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

Exchange = tuple[str, str]


@dataclass(frozen=True)
class Fact:
    """Who keeps which thing where, and its code word."""

    name: str
    colour: str
    thing: str
    place: str
    code: str

    def sentence(self) -> str:
        """How a user states it."""
        return (
            f"{self.name} keeps the {self.colour} {self.thing} in {self.place}. "
            f"Its code is {self.code}."
        )


def made_up_word(rng: random.Random, shortest: int = 4, longest: int = 8) -> str:
    """A word nobody has seen."""
    return "".join(rng.choice(_LETTERS) for _ in range(rng.randint(shortest, longest)))


def made_up_words(rng: random.Random, count: int) -> str:
    """Several such words."""
    return " ".join(made_up_word(rng) for _ in range(count))


def facts(rng: random.Random, count: int) -> list[Fact]:
    """Facts about different things."""
    chosen = rng.sample([(c, t) for c in COLOURS for t in THINGS], count)
    return [
        Fact(rng.choice(NAMES), colour, thing, rng.choice(PLACES), made_up_word(rng))
        for colour, thing in chosen
    ]


def ask(rng: random.Random, known: list[Fact]) -> Exchange:
    """A question about the facts, and its answer."""
    kind = rng.randrange(4)
    fact = rng.choice(known)
    what = f"{fact.colour} {fact.thing}"
    if kind == 0:
        return (
            f"What is the code of the {what}?",
            f"The code of the {what} is {fact.code}. {fact.name} keeps it in {fact.place}.",
        )
    if kind == 1:
        return (
            f"Where is the {what}?",
            f"The {what} is in {fact.place}, and {fact.name} keeps it there.",
        )
    if kind == 2:
        return "Say all of it again.", " ".join(f.sentence() for f in known)
    codes = ", ".join(f"{f.colour} {f.thing}: {f.code}" for f in known)
    return "List all codes.", f"The codes are {codes}."


def fact_conversation(rng: random.Random, turns: int) -> list[Exchange]:
    """Questions and answers over one set of facts, stated in the first question."""
    known = facts(rng, rng.randint(1, 3))
    exchanged = [ask(rng, known) for _ in range(turns)]
    stated = " ".join(fact.sentence() for fact in known)
    question, answer = exchanged[0]
    return [(f"{stated} {question}", answer), *exchanged[1:]]


def echo(words: str) -> Exchange:
    """A request to repeat."""
    return f"Say again: {words}.", f"{words}."


def echo_twice(words: str) -> Exchange:
    """A request to repeat twice; the second time follows the answer itself."""
    return f"Say twice: {words}.", f"{words}, {words}."


def echo_conversation(rng: random.Random, turns: int) -> list[Exchange]:
    """Words to repeat, a few at a time."""
    exchanged = []
    for _ in range(turns):
        make, most = rng.choice([(echo, 8), (echo_twice, 5)])
        exchanged.append(make(made_up_words(rng, rng.randint(1, most))))
    return exchanged


def conversation(rng: random.Random, turns: int = 2) -> list[Exchange]:
    """One conversation of either kind."""
    make = echo_conversation if rng.random() < ECHO_SHARE else fact_conversation
    return make(rng, turns)
