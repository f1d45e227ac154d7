"""What the tree matches on: the only place where key units and tokens differ.

    tokens        t0   t1   t2   t3
    TokenKey     [t0] [t1] [t2] [t3]           n tokens, n units
    BigramKey    [t0 t1][t1 t2][t2 t3]         n tokens, n - 1 units

Unit i names slot i. Draft KV in slot i depends on tokens 0 .. i + 1, so it may be shared only where
the token after it agrees too: that is the bigram. A slice of units [a, b) keeps the tokens
[a, b + overlap), so neighbouring slices share their boundary token and no caller adds or subtracts
one.

Keys are immutable values. The type is the flag: a key can't be converted twice or lose what it is.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from eaglebench.kv.geometry import PageGeometry

_FIRST_BLOCK = 2048
_BLOCK_GROWTH = 8


class _Key:
    """Common part; `overlap` is how many tokens a run of units is longer than its units."""

    __slots__ = ("namespace", "num_units", "tokens")
    overlap: ClassVar[int]

    tokens: NDArray[np.int32]
    namespace: str | None
    num_units: int

    def __init__(
        self, tokens: NDArray[np.int32] | Sequence[int], namespace: str | None = None
    ) -> None:
        self._fill(_frozen_tokens(tokens), namespace)

    def _fill(self, tokens: NDArray[np.int32], namespace: str | None) -> None:
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "namespace", namespace)
        object.__setattr__(self, "num_units", max(len(tokens) - self.overlap, 0))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a key never changes; {name} can't be set")

    @classmethod
    def _view(cls, tokens: NDArray[np.int32], namespace: str | None) -> Self:
        key = cls.__new__(cls)
        key._fill(tokens, namespace)  # noqa: SLF001  # our own class
        return key

    @property
    def num_tokens(self) -> int:
        """Tokens the key spans."""
        return len(self.tokens)

    def head(self, num_units: int) -> Self:
        """The first `num_units` units (all of them if there are fewer); a view."""
        if num_units >= self.num_units:
            return self
        return self._view(self.tokens[: self._tokens_for(num_units)], self.namespace)

    def tail(self, from_unit: int) -> Self:
        """Units from `from_unit` on; a view."""
        if from_unit >= self.num_units:
            return self._view(self.tokens[:0], self.namespace)
        return self._view(self.tokens[from_unit:], self.namespace)

    def page_aligned(self, geometry: PageGeometry) -> Self:
        """Whole pages of units only."""
        return self.head(geometry.floor(self.num_units))

    def shared_units(self, other: Self) -> int:
        """Units in common from the start.

        Raises:
            TypeError: the keys are of different types, so their units can't be compared.
        """
        if type(self) is not type(other):
            raise TypeError(f"{type(self).__name__} against {type(other).__name__}")
        if self.namespace != other.namespace:
            return 0
        return self.shared_with(0, other.tokens, min(self.num_units, other.num_units))

    def shared_with(self, from_unit: int, tokens: NDArray[np.int32], num_units: int) -> int:
        """Units that units `from_unit` .. of this key share with `num_units` units of `tokens`."""
        count = self._tokens_for(min(num_units, self.num_units - from_unit))
        shared = _shared_tokens(self.tokens[from_unit : from_unit + count], tokens[:count])
        return max(shared - self.overlap, 0)

    def page_token(self, from_unit: int, geometry: PageGeometry) -> bytes:
        """The bytes of the page of units that starts at `from_unit`."""
        end = from_unit + geometry.page_size + self.overlap
        return self.tokens[from_unit:end].tobytes()

    @classmethod
    def _tokens_for(cls, num_units: int) -> int:
        return num_units + cls.overlap if num_units > 0 else 0

    def __len__(self) -> int:
        raise TypeError("say num_units or num_tokens")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, _Key):
            return NotImplemented
        return self.namespace == other.namespace and np.array_equal(self.tokens, other.tokens)

    def __hash__(self) -> int:
        return hash((type(self), self.namespace, self.tokens.tobytes()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.tokens.tolist()}, {self.namespace!r})"


class TokenKey(_Key):
    """One token a unit: right for target KV alone, wrong for draft KV."""

    __slots__ = ()
    overlap = 0

    @staticmethod
    def cacheable_units(num_known_tokens: int, num_written_slots: int) -> int:
        """Leading written slots whose own token is known."""
        return min(num_written_slots, num_known_tokens)


class BigramKey(_Key):
    """A token and its successor a unit: right for target and draft KV."""

    __slots__ = ()
    overlap = 1

    @staticmethod
    def cacheable_units(num_known_tokens: int, num_written_slots: int) -> int:
        """Leading written slots whose own token and successor are known."""
        return min(num_written_slots, max(num_known_tokens - BigramKey.overlap, 0))


PrefixKey = TokenKey | BigramKey


def _frozen_tokens(tokens: NDArray[np.int32] | Sequence[int]) -> NDArray[np.int32]:
    """Tokens that nobody can change: a read-only array as it is, anything else copied."""
    if isinstance(tokens, np.ndarray) and tokens.dtype == np.int32:
        owns_its_data = tokens.base is None  # a read-only view may look at data that changes
        if owns_its_data and not tokens.flags.writeable:
            return tokens
    copied = np.array(tokens, dtype=np.int32)
    copied.flags.writeable = False
    return copied


def _shared_tokens(left: NDArray[np.int32], right: NDArray[np.int32]) -> int:
    """Length of the common prefix of two arrays of one length.

    Compared in growing blocks, so that an early mismatch in a long key costs little.
    """
    length = len(left)
    start, block = 0, _FIRST_BLOCK
    while start < length:
        end = min(start + block, length)
        differs = left[start:end] != right[start:end]
        first = int(differs.argmax())
        if differs[first]:
            return start + first
        start, block = end, block * _BLOCK_GROWTH
    return length
