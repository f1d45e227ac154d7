"""Rounding to pages and slot ids."""

import numpy as np
import pytest

from eaglebench.errors import UsageError
from eaglebench.kv.geometry import PageGeometry


@pytest.mark.parametrize("page_size", [0, -1])
def test_a_page_holds_at_least_one_slot(page_size: int) -> None:
    """A page size below one is a user's mistake."""
    with pytest.raises(UsageError, match="page size"):
        PageGeometry(page_size)


@pytest.mark.parametrize(
    ("num_slots", "pages", "floor", "ceil"),
    [(0, 0, 0, 0), (1, 1, 0, 4), (4, 1, 4, 4), (5, 2, 4, 8), (8, 2, 8, 8)],
)
def test_rounding(num_slots: int, pages: int, floor: int, ceil: int) -> None:
    """Pages round up, floor and ceil go to multiples of the page size."""
    geometry = PageGeometry(4)

    assert geometry.pages_for(num_slots) == pages
    assert geometry.floor(num_slots) == floor
    assert geometry.ceil(num_slots) == ceil


@pytest.mark.parametrize("page_size", [1, 3, 16])
def test_slots_of_pages_go_back_to_their_pages(page_size: int) -> None:
    """Slots are page * page_size + offset, in the order of the pages."""
    geometry = PageGeometry(page_size)
    pages = np.array([7, 3, 9], dtype=np.int32)
    slots = geometry.slots_of(pages)

    assert slots.dtype == np.int64
    assert slots.tolist() == [p * page_size + o for p in (7, 3, 9) for o in range(page_size)]
    assert geometry.pages_of_slots(slots).tolist() == np.repeat(pages, page_size).tolist()
    assert [geometry.page_of_slot(s) for s in slots.tolist()] == [
        p for p in (7, 3, 9) for _ in range(page_size)
    ]
    assert geometry.offset_in_page(slots).tolist() == list(range(page_size)) * len(pages)


def test_no_slot_lies_in_no_page() -> None:
    """Slot -1 is in page -1, never in the dummy page."""
    assert PageGeometry(4).pages_of_slots(np.array([-1])).tolist() == [-1]
