"""Keys and the tree against naive models, on random inputs."""

from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import BigramKey, PrefixKey, TokenKey
from eaglebench.kv.radix import RadixTree

Units = list[tuple[int, ...]]

tokens_of_two = st.lists(st.integers(0, 1), max_size=24)
key_types = st.sampled_from([TokenKey, BigramKey])
page_sizes = st.sampled_from([1, 2, 4, 16])


def naive_units(key_type: type[PrefixKey], tokens: list[int]) -> Units:
    """Units written out as tuples."""
    if key_type is TokenKey:
        return [(token,) for token in tokens]
    return list(pairwise(tokens))


def units_of(key: PrefixKey) -> Units:
    """Units of a key written out as tuples."""
    return naive_units(type(key), key.tokens.tolist())


def naive_shared(left: Units, right: Units) -> int:
    """Units in common from the start, one by one."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


@given(key_types, tokens_of_two, st.integers(0, 30), st.integers(0, 30))
def test_slices_are_slices_of_units(
    key_type: type[PrefixKey], tokens: list[int], start: int, end: int
) -> None:
    """Head, tail and both together equal slicing the written-out units."""
    units = naive_units(key_type, tokens)
    key = key_type(tokens)

    assert key.num_units == len(units)
    assert units_of(key.head(end)) == units[:end]
    assert units_of(key.tail(start)) == units[start:]
    assert units_of(key.head(end).tail(start)) == units[:end][start:]


@given(key_types, tokens_of_two, page_sizes)
def test_alignment_keeps_whole_pages(
    key_type: type[PrefixKey], tokens: list[int], page_size: int
) -> None:
    """The longest head whose units fill whole pages; aligning again changes nothing."""
    geometry = PageGeometry(page_size)
    key = key_type(tokens)
    aligned = key.page_aligned(geometry)

    assert aligned.num_units == key.num_units // page_size * page_size
    assert aligned.page_aligned(geometry) == aligned


@given(key_types, tokens_of_two, tokens_of_two)
def test_shared_units_equal_the_naive_count(
    key_type: Any, left: list[int], right: list[int]
) -> None:
    """Also in the other order, and against itself all units."""
    expected = naive_shared(naive_units(key_type, left), naive_units(key_type, right))

    assert key_type(left).shared_units(key_type(right)) == expected
    assert key_type(right).shared_units(key_type(left)) == expected
    assert key_type(left).shared_units(key_type(left)) == len(naive_units(key_type, left))


class NaiveTree:
    """Every page-aligned prefix ever inserted, by its units, with the page at its end."""

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.page_at: dict[tuple[tuple[int, ...], ...], int] = {}

    def match(self, units: Units) -> list[int]:
        """Page ids of the longest known prefix."""
        found: list[int] = []
        for end in range(self.page_size, len(units) + 1, self.page_size):
            page = self.page_at.get(tuple(units[:end]))
            if page is None:
                break
            found.append(page)
        return found

    def insert(self, units: Units, pages: list[int]) -> int:
        """Remember the pages that are new; returns how many were not."""
        num_present = len(self.match(units))
        for number in range(num_present, len(pages)):
            self.page_at[tuple(units[: (number + 1) * self.page_size])] = pages[number]
        return num_present


@settings(max_examples=80, deadline=None)
@given(key_types, page_sizes, st.lists(tokens_of_two, max_size=12), tokens_of_two)
def test_the_tree_equals_a_table_of_prefixes(
    key_type: type[PrefixKey], page_size: int, history: list[list[int]], probe: list[int]
) -> None:
    """After any inserts, a match returns the pages that were first inserted for each prefix."""
    geometry = PageGeometry(page_size)
    tree, naive = RadixTree(geometry), NaiveTree(page_size)
    next_page = 1
    for tokens in history:
        key = key_type(tokens).page_aligned(geometry)
        count = geometry.pages_for(key.num_units)
        pages = np.arange(next_page, next_page + count, dtype=np.int32)
        next_page += count
        num_present, end = tree.insert(key, pages)
        assert num_present == naive.insert(units_of(key), pages.tolist())
        assert tree.pages_to(end, len(end.pages)).tolist() == naive.match(units_of(key))
        tree.audit()

    for tokens in [*history, probe]:
        got = tree.pages_of(tree.match(key_type(tokens)))
        assert got.tolist() == naive.match(naive_units(key_type, tokens))


def test_the_laws_see_unigram_slices() -> None:
    """A bigram key that forgets its boundary token when it is cut breaks the slice law."""

    class Forgetful(BigramKey):
        @classmethod
        def _tokens_for(cls, num_units: int) -> int:
            return num_units

    with pytest.raises(AssertionError):
        assert units_of(Forgetful([1, 2, 3]).head(1)) == [(1, 2)]
