"""Numbers with their nouns, as people write them."""

_IRREGULAR = {"pass": "passes"}


def counted(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`, `3600 turns`."""
    return f"{number} {noun if number == 1 else _IRREGULAR.get(noun, f'{noun}s')}"
