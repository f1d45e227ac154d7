"""Block tables: slots by position and what lies beyond the allocation."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from eaglebench.errors import InvariantError
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.tables import BlockTable


def make_table(pages: list[int], page_size: int = 4, beyond: int | None = None) -> BlockTable:
    """A table that holds some pages."""
    table = BlockTable(PageGeometry(page_size), beyond)
    table.append(np.array(pages, dtype=np.int32))
    return table


def test_slots_follow_the_pages() -> None:
    """A range over a page border names the slots of both pages."""
    table = make_table([7, 3])

    assert table.slots(2, 6).tolist() == [30, 31, 12, 13]
    assert (table.num_pages, table.num_slots) == (2, 8)


def test_slots_beyond_the_allocation_fault() -> None:
    """They read as -1, which pools refuse, and never as a page."""
    table = make_table([7])

    assert table.slots(3, 6).tolist() == [31, -1, -1]
    assert table.slots(5, 7).tolist() == [-1, -1]


def test_the_planted_fault_reads_page_zero() -> None:
    """A table that defaults to page 0 names its slots, offset by offset."""
    table = make_table([7], beyond=0)

    assert table.slots(3, 7).tolist() == [31, 0, 1, 2]


def test_truncate_then_append() -> None:
    """What was cut off is beyond the allocation until other pages take its place."""
    table = make_table([7, 3, 9])
    table.truncate(1)

    assert table.slots(3, 5).tolist() == [31, -1]
    table.append(np.array([2], dtype=np.int32))
    assert table.slots(0, 8).tolist() == [28, 29, 30, 31, 8, 9, 10, 11]


def test_replace_returns_what_stood_there() -> None:
    """The old pages come back as a copy and the slots name the new ones."""
    table = make_table([7, 3, 9])
    old = table.replace(1, np.array([5, 6], dtype=np.int32))

    assert old.tolist() == [3, 9]
    assert table.pages.tolist() == [7, 5, 6]
    assert table.slots(4, 5).tolist() == [20]


def test_growth_keeps_pages_and_slots() -> None:
    """A table of any length names the slots of all its pages."""
    table = make_table([], page_size=2)
    pages = np.random.default_rng(0).permutation(np.arange(1, 1001, dtype=np.int32))
    for part in np.split(pages, [1, 2, 70, 71, 500]):
        table.append(part)

    assert table.pages.tolist() == pages.tolist()
    assert table.slots(0, 2000).tolist() == PageGeometry(2).slots_of(pages).tolist()


def test_reads_are_copies() -> None:
    """Later changes to the table do not reach what was read from it."""
    table = make_table([7, 3])
    pages, slots = table.pages, table.slots(0, 8)
    table.replace(0, np.array([1, 2], dtype=np.int32))

    assert pages.tolist() == [7, 3]
    assert slots.tolist()[0] == 28


def test_keeping_or_replacing_what_is_not_held_is_a_bug() -> None:
    """Neither verb makes a table longer."""
    table = make_table([7])

    with pytest.raises(InvariantError, match="can't keep 2 of 1"):
        table.truncate(2)
    with pytest.raises(InvariantError, match="can't replace"):
        table.replace(0, np.array([1, 2], dtype=np.int32))


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[tuple[str, int, list[int]]]]:
    """A page size, and pages appended, cut off and replaced."""
    pages = st.lists(st.integers(1, 6), min_size=1, max_size=4)
    runs = st.integers(1, 20).flatmap(
        lambda first: st.integers(1, 5).map(lambda n: list(range(first, first + n)))
    )
    kinds = st.sampled_from(["append", "truncate", "replace"])
    actions = st.lists(st.tuples(kinds, st.integers(0, 30), pages | runs), max_size=12)
    return draw(st.sampled_from([1, 2, 16])), draw(actions)


@given(histories())
def test_leading_slots_are_those_of_a_walk(
    history: tuple[int, list[tuple[str, int, list[int]]]],
) -> None:
    """Whatever happened to the table, slots and the run among them are what looking at all says."""
    page_size, actions = history
    table = BlockTable(PageGeometry(page_size))
    for kind, number, pages in actions:
        given_pages = np.array(pages, dtype=np.int32)
        if kind == "append":
            table.append(given_pages)
        elif kind == "truncate":
            table.truncate(min(number, table.num_pages))
        elif number + len(pages) <= table.num_pages:
            table.replace(number, given_pages)
        for end in range(1, table.num_slots + 2):
            slots, run_start = table.leading(end)
            expected = table.slots(0, end)
            is_run = bool((np.diff(expected) == 1).all()) and expected[-1] >= 0
            assert slots.tolist() == expected.tolist()
            assert run_start == (int(expected[0]) if is_run else None)


def test_leading_slots_are_not_copied() -> None:
    """A long request costs as much as a short one: what is given lies in the table's own array."""
    table = BlockTable(PageGeometry(1))
    table.append(np.arange(40_000, 0, -1, dtype=np.int32))

    first, second = table.leading(32_768), table.leading(32_000)

    assert np.shares_memory(first.slots, second.slots)
    assert table.pages_between(5, 8).tolist() == [39_995, 39_994, 39_993]
