"""How often a run repeats itself for the sake of times, and how precise is precise enough."""

import re
from dataclasses import dataclass

_RANGE = re.compile(r"(\d+)(?::(\d+))?")
_SHARE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(%?)")


@dataclass(frozen=True, slots=True)
class PassRange:
    """Fewest and most passes over the questions; each pass pairs every arm with `no-cache`."""

    least: int
    most: int

    @classmethod
    def parse(cls, text: str) -> "PassRange":
        """`8:40`, or `8` for exactly eight.

        Raises:
            ValueError: it is neither.
        """
        found = _RANGE.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is no number of passes; expected one such as 8, or 8:40")
        least = int(found[1])
        most = int(found[2] or least)
        if least < 1 or most < least:
            raise ValueError(
                f"{text!r}: expected LEAST:MOST, such as 8:40, with LEAST from 1 and MOST not below it"
            )
        return cls(least, most)

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least}:{self.most}"


def parse_share(value: object) -> float:
    """A share between 0 and 1: `1%`, `0.01` or a number.

    Raises:
        ValueError: it is none.
    """
    found = _SHARE.fullmatch(str(value).strip())
    if found is None:
        raise ValueError(f"{value!r} is no share; expected one such as 1% or 0.01")
    share = float(found[1]) / (100 if found[2] else 1)
    if not 0 < share < 1:
        raise ValueError(f"{value!r}: expected more than 0 and less than 100%")
    return share
