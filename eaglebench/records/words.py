"""Numbers with their nouns and units, as people write them."""

_ROUNDED = 999.95
"""From here on a number with one decimal would be written as 1000.0."""
_UNITS = ("kB", "MB", "GB", "TB")
_SINGULAR = {"are": "is", "have": "has", "were": "was"}
_IRREGULAR = {"pass": "passes"}


def counted(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`, `3600 turns`."""
    return f"{number} {noun if number == 1 else _IRREGULAR.get(noun, f'{noun}s')}"


def doing(number: int, noun: str, verb: str) -> str:
    """`1 question asks`, `2 questions ask`; `were` and `have` are known."""
    one = _SINGULAR.get(verb, f"{verb}s")
    return f"{counted(number, noun)} {one if number == 1 else verb}"


def sized(num_bytes: int) -> str:
    """`512 bytes`, `1.6 kB`, `271.2 MB`, `25.3 GB`: decimal, as disks and pools are sold."""
    if num_bytes < 1000:
        return counted(num_bytes, "byte")
    step = next((n for n in range(1, len(_UNITS)) if num_bytes / 1000**n < _ROUNDED), len(_UNITS))
    return f"{num_bytes / 1000**step:.1f} {_UNITS[step - 1]}"
