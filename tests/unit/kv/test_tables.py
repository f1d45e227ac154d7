"""Block tables: slots by position and what lies beyond the allocation."""

import numpy as np
import pytest

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
