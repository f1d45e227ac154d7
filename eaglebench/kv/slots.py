"""Reservations: pages for the slots a request needs in one step, taken all at once or not at all."""

import numpy as np
from numpy.typing import NDArray

from eaglebench.errors import InvariantError
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.pages import NO_PAGES, PageAllocator
from eaglebench.kv.preallocation import Demand, PageNeed, page_need
from eaglebench.kv.tables import BlockTable
from eaglebench.records.knobs import Preallocation


class SlotAllocator:
    """Moves pages between the free list and block tables."""

    def __init__(
        self,
        pages: PageAllocator,
        geometry: PageGeometry,
        policy: Preallocation = "none",
        preallocate_tokens: int = 0,
    ) -> None:
        self.pages = pages
        self.geometry = geometry
        self.policy = policy
        self.preallocate_tokens = preallocate_tokens

    def shortage(self, table: BlockTable, demand: Demand) -> tuple[int, int]:
        """Pages missing in both pools for the required part of a demand. Changes nothing."""
        return self.pages.missing(self._need(table, demand).required)

    def reserve(self, table: BlockTable, demand: Demand) -> NDArray[np.int32] | None:
        """Append pages for a demand to a table, which owns them afterwards; returns them.

        Preallocation takes no more than what is free. Returns None, and changes nothing, when the
        required part does not fit.
        """
        need = self._need(table, demand)
        if not need.required:
            return NO_PAGES
        extra = min(need.preallocated, self.pages.num_allocatable - need.required)
        if extra < 0:
            return None
        taken = self.pages.allocate(need.required + extra)
        if taken is None:
            return None
        table.append(taken)
        return taken

    def release(self, table: BlockTable, from_slot: int) -> int:
        """Free the table's pages from slot `from_slot` on; returns how many.

        Raises:
            InvariantError: `from_slot` is not the start of a page.
        """
        keep = self.geometry.pages_for(from_slot)
        if self.geometry.floor(from_slot) != from_slot:
            raise InvariantError(f"slot {from_slot} is not the start of a page")
        given_back = table.pages[keep:]
        self.pages.free(given_back)
        num_returned = len(given_back)
        table.truncate(keep)
        return num_returned

    def _need(self, table: BlockTable, demand: Demand) -> PageNeed:
        return page_need(
            self.policy,
            demand,
            geometry=self.geometry,
            num_held=table.num_pages,
            preallocate_tokens=self.preallocate_tokens,
        )
