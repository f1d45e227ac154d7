"""Keys: units, slices, and that they can't be mixed or changed."""

import numpy as np
import pytest

from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import BigramKey, PrefixKey, TokenKey

KEY_TYPES = [TokenKey, BigramKey]


def test_a_bigram_key_has_a_unit_less_than_tokens() -> None:
    """N tokens are N - 1 bigrams; none and one token are none."""
    assert [BigramKey(range(n)).num_units for n in range(4)] == [0, 0, 1, 2]
    assert [TokenKey(range(n)).num_units for n in range(4)] == [0, 1, 2, 3]


def test_slices_share_their_boundary_token() -> None:
    """A head of n bigrams spans n + 1 tokens, and the tail starts with the last of them."""
    key = BigramKey([1, 2, 3, 4, 5])

    assert key.head(2) == BigramKey([1, 2, 3])
    assert key.tail(2) == BigramKey([3, 4, 5])
    assert key.head(2).num_units + key.tail(2).num_units == key.num_units


@pytest.mark.parametrize("key_type", KEY_TYPES)
def test_empty_and_whole_slices(key_type: type[PrefixKey]) -> None:
    """A head of nothing and a tail past the end are empty; a longer head is the key itself."""
    key = key_type([1, 2, 3])

    assert key.head(0).num_tokens == 0
    assert key.head(-4).num_tokens == 0
    assert key.tail(3).num_tokens == 0
    assert key.head(99) is key


def test_page_alignment_counts_units() -> None:
    """17 tokens are 16 bigrams, one page of 16; 16 tokens are none."""
    geometry = PageGeometry(16)

    assert BigramKey(range(17)).page_aligned(geometry).num_units == 16
    assert BigramKey(range(16)).page_aligned(geometry).num_units == 0
    assert TokenKey(range(17)).page_aligned(geometry).num_units == 16


def test_the_page_token_of_bigrams_holds_the_successor() -> None:
    """Two pages that differ only in the token after them are different pages of bigrams."""
    geometry = PageGeometry(2)
    left, right = [1, 2, 3], [1, 2, 4]

    assert BigramKey(left).page_token(0, geometry) != BigramKey(right).page_token(0, geometry)
    assert TokenKey(left).page_token(0, geometry) == TokenKey(right).page_token(0, geometry)


def test_shared_units_stop_before_a_different_successor() -> None:
    """Keys that share n tokens share n - 1 bigrams."""
    assert BigramKey([1, 2, 3, 9]).shared_units(BigramKey([1, 2, 3, 4])) == 2
    assert TokenKey([1, 2, 3, 9]).shared_units(TokenKey([1, 2, 3, 4])) == 3


def test_shared_units_of_long_keys_are_found_in_any_block() -> None:
    """A mismatch is found before, at and after every block border of the comparison."""
    tokens = np.zeros(40_000, dtype=np.int32)
    for first in (0, 1, 2047, 2048, 2049, 18_431, 18_432, 39_999):
        other = tokens.copy()
        other[first] = 1
        assert TokenKey(tokens).shared_units(TokenKey(other)) == first


def test_name_spaces_share_nothing() -> None:
    """Equal tokens under two names have no unit in common and are not equal."""
    left, right = BigramKey([1, 2, 3], "a"), BigramKey([1, 2, 3], "b")

    assert left.shared_units(right) == 0
    assert left != right
    assert left.head(1).namespace == "a"


def test_types_never_mix() -> None:
    """Comparing units of two types is an error, and keys of two types are never equal."""
    with pytest.raises(TypeError, match="TokenKey against BigramKey"):
        TokenKey([1, 2]).shared_units(BigramKey([1, 2]))  # type: ignore[arg-type]  # the point
    assert TokenKey([1, 2]) != BigramKey([1, 2])
    assert TokenKey([1, 2]) != "12"


@pytest.mark.parametrize("key_type", KEY_TYPES)
def test_a_key_never_changes(key_type: type[PrefixKey]) -> None:
    """Neither its attributes, nor its array, nor through the array it was made from."""
    source = np.array([1, 2, 3], dtype=np.int32)
    key = key_type(source)
    source[0] = 9

    assert key.tokens.tolist() == [1, 2, 3]
    with pytest.raises(AttributeError, match="never changes"):
        key.namespace = "other"
    with pytest.raises(ValueError, match="read-only"):
        key.tokens[0] = 9


def test_a_read_only_array_is_not_copied_but_a_read_only_view_is() -> None:
    """A view may look at data that its owner still changes."""
    owner = np.array([1, 2, 3], dtype=np.int32)
    view = owner[:]
    view.flags.writeable = False
    of_view = BigramKey(view)
    owner[0] = 9
    owner.flags.writeable = False

    assert of_view.tokens.tolist() == [1, 2, 3]
    assert np.shares_memory(BigramKey(owner).tokens, owner)


def test_equal_keys_hash_alike_and_print_their_tokens() -> None:
    """Keys are values: usable in sets, readable in messages; len() is ambiguous and refused."""
    assert len({BigramKey([1, 2]), BigramKey([1, 2]), TokenKey([1, 2])}) == 2
    assert repr(BigramKey([1, 2], "n")) == "BigramKey([1, 2], 'n')"
    with pytest.raises(TypeError, match="num_units or num_tokens"):
        len(BigramKey([1, 2]))


@pytest.mark.parametrize(
    ("known", "written", "bigrams", "tokens"),
    [(13, 12, 12, 12), (65, 64, 64, 64), (64, 64, 63, 64), (150, 64, 64, 64), (0, 0, 0, 0)],
)
def test_cacheable_units(known: int, written: int, bigrams: int, tokens: int) -> None:
    """min(S, N - 1) bigrams: the sampled last token and the next prompt token are successors."""
    assert BigramKey.cacheable_units(known, written) == bigrams
    assert TokenKey.cacheable_units(known, written) == tokens
