"""Block tables: which pages hold a request's tokens, in order. The source of truth.

logical page      0        1        2
table          [ 7 ]    [ 3 ]    [ 9 ]    |  beyond: -1, so that using it raises
slots (ps 4)   28..31   12..15   36..39   |
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eaglebench.errors import InvariantError
from eaglebench.kv.geometry import PageGeometry

UNALLOCATED_SLOT = -1
_FIRST_ROOM = 64


class LeadingSlots(NamedTuple):
    """Slots of the first positions of a table.

    Attributes:
        slots: [end] int64; a view of the table where all of them are allocated, good until the
            table changes.
        run_start: the first slot where they are one ascending run, else None.
    """

    slots: NDArray[np.int64]
    run_start: int | None


class BlockTable:
    """Pages of one request by logical page number.

    `unallocated_page` is what entries beyond the allocation read as: None reads as slot -1, which
    pools refuse; a page number is the planted fault of engines whose tables default to it.
    """

    def __init__(self, geometry: PageGeometry, unallocated_page: int | None = None) -> None:
        self.geometry = geometry
        self.unallocated_page = unallocated_page
        self._pages = np.empty(_FIRST_ROOM, dtype=np.int32)
        self._slots = np.empty(_FIRST_ROOM * geometry.page_size, dtype=np.int64)
        self._num_pages = 0
        self._num_run_pages = 0  # leading pages that follow one another in the pool as well

    @property
    def num_pages(self) -> int:
        """Pages held."""
        return self._num_pages

    @property
    def num_slots(self) -> int:
        """Slots held."""
        return self._num_pages * self.geometry.page_size

    @property
    def pages(self) -> NDArray[np.int32]:
        """[num_pages] int32, a copy."""
        return self._pages[: self._num_pages].copy()

    def append(self, pages: NDArray[np.int32]) -> None:
        """Put pages behind those held."""
        end = self._num_pages + len(pages)
        if end > len(self._pages):
            self._grow(end)
        self._set(self._num_pages, pages)
        self._num_pages = end
        self._extend_run()

    def truncate(self, num_pages: int) -> None:
        """Keep the first `num_pages` pages."""
        if num_pages > self._num_pages:
            raise InvariantError(f"can't keep {num_pages} of {self._num_pages} pages")
        self._num_pages = num_pages
        self._num_run_pages = min(self._num_run_pages, num_pages)

    def replace(self, from_page: int, pages: NDArray[np.int32]) -> NDArray[np.int32]:
        """Overwrite pages from logical page `from_page` on; returns what stood there."""
        end = from_page + len(pages)
        if end > self._num_pages:
            raise InvariantError(f"can't replace up to page {end} of {self._num_pages}")
        old = self._pages[from_page:end].copy()
        self._set(from_page, pages)
        self._num_run_pages = min(self._num_run_pages, from_page)
        self._extend_run()
        return old

    def pages_between(self, start: int, end: int) -> NDArray[np.int32]:
        """[end - start] int32 pages by logical number, a copy of those alone."""
        return self._pages[start : min(end, self._num_pages)].copy()

    def leading(self, end: int) -> LeadingSlots:
        """Slots of positions [0, end), at a cost that does not depend on how many they are."""
        if not 0 < end <= self.num_slots:
            return LeadingSlots(self.slots(0, end), None)
        is_run = self.geometry.pages_for(end) <= self._num_run_pages
        return LeadingSlots(self._slots[:end], int(self._slots[0]) if is_run else None)

    def slots(self, start: int, end: int) -> NDArray[np.int64]:
        """[end - start] int64 slot ids of positions [start, end), a copy."""
        held = self.num_slots
        if end <= held:
            return self._slots[start:end].copy()
        beyond = np.arange(max(start, held), end)
        return np.concatenate([self._slots[start:held], self._unallocated(beyond)])

    def _unallocated(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.unallocated_page is None:
            return np.full(len(positions), UNALLOCATED_SLOT, dtype=np.int64)
        first = self.unallocated_page * self.geometry.page_size
        return first + self.geometry.offset_in_page(positions)

    def _extend_run(self) -> None:
        """Look at the pages behind the run that is known."""
        first = max(self._num_run_pages, 1)
        steps = np.diff(self._pages[first - 1 : self._num_pages]) != 1
        broken = np.flatnonzero(steps)
        self._num_run_pages = first + int(broken[0]) if len(broken) else self._num_pages

    def _set(self, from_page: int, pages: NDArray[np.int32]) -> None:
        size = self.geometry.page_size
        end = from_page + len(pages)
        self._pages[from_page:end] = pages
        self._slots[from_page * size : end * size] = self.geometry.slots_of(pages)

    def _grow(self, num_pages: int) -> None:
        room = max(2 * len(self._pages), num_pages)
        pages = np.empty(room, dtype=np.int32)
        pages[: self._num_pages] = self._pages[: self._num_pages]
        slots = np.empty(room * self.geometry.page_size, dtype=np.int64)
        slots[: self.num_slots] = self._slots[: self.num_slots]
        self._pages, self._slots = pages, slots
