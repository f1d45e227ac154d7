"""Synthetic conversations a few-layer byte model can learn, with facts that come back later.

A conversation states facts with made-up names and numbers and then asks for them, so that both the
target and the head have to look back: a head whose KV is wrong guesses worse.
"""

import random

COLOURS = ["amber", "azure", "coral", "ivory", "olive", "plum", "ruby", "teal"]
THINGS = ["lamp", "gate", "boat", "drum", "kite", "vase", "clock", "chair"]
PLACES = ["the hall", "the yard", "the attic", "the shop", "the barn", "the dock"]
NAMES = ["Mira", "Tomas", "Ines", "Jonas", "Petra", "Oskar", "Lena", "Viktor"]
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def made_up_word(rng: random.Random) -> str:
    """A word nobody has seen."""
    return "".join(rng.choice(_LETTERS) for _ in range(rng.randint(3, 6)))


def facts(rng: random.Random, count: int) -> list[tuple[str, str, str, str, str]]:
    """Facts: who keeps which thing where, and its code word."""
    chosen = rng.sample([(c, t) for c in COLOURS for t in THINGS], count)
    return [
        (rng.choice(NAMES), colour, thing, rng.choice(PLACES), made_up_word(rng))
        for colour, thing in chosen
    ]


def state(fact: tuple[str, str, str, str, str]) -> str:
    """A fact as a sentence."""
    name, colour, thing, place, code = fact
    return f"{name} keeps the {colour} {thing} in {place}. Its code is {code}."


def ask(rng: random.Random, all_facts: list[tuple[str, str, str, str, str]]) -> tuple[str, str]:
    """A question about the facts, and its answer."""
    kind = rng.randrange(4)
    name, colour, thing, place, code = rng.choice(all_facts)
    if kind == 0:
        return (
            f"What is the code of the {colour} {thing}?",
            f"The code of the {colour} {thing} is {code}. {name} keeps it in {place}.",
        )
    if kind == 1:
        return (
            f"Where is the {colour} {thing}?",
            f"The {colour} {thing} is in {place}, and {name} keeps it there.",
        )
    if kind == 2:
        listed = " ".join(
            f"{i}. The {c} {t} is in {p}." for i, (_, c, t, p, _) in enumerate(all_facts, 1)
        )
        return "List all things.", listed
    codes = ", ".join(f"{c} {t}: {k}" for _, c, t, _, k in all_facts)
    return "List all codes.", f"The codes are {codes}."


def conversation(rng: random.Random, turns: int = 2) -> list[tuple[str, str]]:
    """Questions and answers over one set of facts, stated in the first question."""
    all_facts = facts(rng, rng.randint(2, 3))
    exchanged = []
    for turn in range(turns):
        question, answer = ask(rng, all_facts)
        if turn == 0:
            question = " ".join(map(state, all_facts)) + " " + question
        exchanged.append((question, answer))
    return exchanged
