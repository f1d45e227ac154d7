"""Reservations: all or nothing, and what is given back."""

import numpy as np
import pytest

from eaglebench.errors import InvariantError
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.pages import PageAllocator
from eaglebench.kv.preallocation import Demand
from eaglebench.kv.slots import SlotAllocator
from eaglebench.kv.tables import BlockTable
from eaglebench.records.knobs import Preallocation

PAGE_SIZE = 4


def make_slots(
    num_pages: int = 8, policy: Preallocation = "none", preallocate_tokens: int = 0
) -> tuple[SlotAllocator, BlockTable]:
    """An allocator over a fresh pool, and an empty table."""
    geometry = PageGeometry(PAGE_SIZE)
    allocator = SlotAllocator(PageAllocator(num_pages), geometry, policy, preallocate_tokens)
    return allocator, BlockTable(geometry)


def make_demand(computed: int, new: int, lookahead: int = 0) -> Demand:
    """A demand without a context limit."""
    return Demand(num_computed=computed, num_new=new, num_lookahead=lookahead)


def test_a_reservation_appends_pages() -> None:
    """5 slots and 2 of look-ahead are two pages at page size 4."""
    slots, table = make_slots()
    reservation = slots.reserve(table, make_demand(0, 5, 2))

    assert reservation is not None
    assert reservation.tolist() == table.pages.tolist() == [1, 2]


def test_repeating_a_demand_takes_nothing() -> None:
    """Without progress there is nothing to reserve and no allocation call is counted."""
    slots, table = make_slots(policy="covered", preallocate_tokens=4)
    slots.reserve(table, make_demand(0, 5, 2))
    again = slots.reserve(table, make_demand(0, 5, 2))

    assert again is not None
    assert len(again) == 0
    assert slots.pages.num_alloc_calls == 1


def test_a_short_pool_refuses_without_side_effects() -> None:
    """None: neither pool nor table nor call count has changed; the shortage says how much."""
    slots, table = make_slots(num_pages=2)

    assert slots.shortage(table, make_demand(0, 13)) == (2, 0)
    assert slots.reserve(table, make_demand(0, 13)) is None
    assert (slots.pages.num_free, table.num_pages, slots.pages.num_alloc_calls) == (2, 0, 0)


def test_preallocation_is_clipped_to_what_is_free() -> None:
    """It never makes a reservation fail and is not part of the shortage: of 16 pages 1 is free."""
    slots, table = make_slots(num_pages=3, policy="covered", preallocate_tokens=64)

    assert slots.shortage(table, make_demand(0, 8)) == (0, 0)
    reservation = slots.reserve(table, make_demand(0, 8))
    assert reservation is not None
    assert len(reservation) == 2 + 1


def test_release_gives_back_from_a_page_border() -> None:
    """Everything from the border on is free again, the rest stays."""
    slots, table = make_slots()
    slots.reserve(table, make_demand(0, 15))

    assert slots.release(table, 8) == 2
    assert table.pages.tolist() == [1, 2]
    assert slots.pages.num_free == 6
    assert slots.release(table, 0) == 2
    assert slots.pages.num_free == 8


def test_release_inside_a_page_is_a_bug() -> None:
    """A page has one owner, so nobody can give back half of one."""
    slots, table = make_slots()
    slots.reserve(table, make_demand(0, 8))

    with pytest.raises(InvariantError, match="not the start of a page"):
        slots.release(table, 3)
    assert table.num_pages == 2


def test_chunks_without_a_tree_use_no_more_than_the_prompt() -> None:
    """Chunks go on where the last one ended (sglang#36855): 100 tokens in chunks of 16."""
    slots, table = make_slots(num_pages=40)
    for start in range(0, 100, 16):
        assert slots.reserve(table, make_demand(start, min(16, 100 - start), 3)) is not None

    assert table.num_pages == PageGeometry(PAGE_SIZE).pages_for(103)


def test_shortage_changes_nothing() -> None:
    """Asking is free."""
    slots, table = make_slots()
    before = slots.pages.free_pages()
    slots.shortage(table, make_demand(0, 9))

    np.testing.assert_array_equal(slots.pages.free_pages(), before)
