"""Pages and slots: the only place that divides by the page size.

slot = page * page_size + offset        page 0 is the dummy page and is never handed out
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eaglebench.errors import UsageError


@dataclass(frozen=True, slots=True)
class PageGeometry:
    """How slots are grouped into pages of `page_size` slots."""

    page_size: int

    def __post_init__(self) -> None:
        if self.page_size < 1:
            raise UsageError(f"page size is {self.page_size}; expected at least 1")

    def pages_for(self, num_slots: int) -> int:
        """Pages that hold `num_slots` slots, the last one perhaps partly."""
        return -(-num_slots // self.page_size)

    def whole_pages(self, num_slots: int) -> int:
        """Pages that `num_slots` slots fill; a last page that they fill in part is not counted."""
        return num_slots // self.page_size

    def floor(self, num_slots: int) -> int:
        """Largest multiple of the page size that is not above `num_slots`."""
        return self.whole_pages(num_slots) * self.page_size

    def ceil(self, num_slots: int) -> int:
        """Smallest multiple of the page size that is not below `num_slots`."""
        return self.pages_for(num_slots) * self.page_size

    def page_of_slot(self, slot: int) -> int:
        """The page a slot lies in."""
        return slot // self.page_size

    def slots_of(self, pages: NDArray[np.int32]) -> NDArray[np.int64]:
        """[num_pages * page_size] int64: all slots of `pages`, in order."""
        first = pages.astype(np.int64) * self.page_size
        if self.page_size == 1:
            return first
        return (first[:, None] + np.arange(self.page_size, dtype=np.int64)).reshape(-1)

    def offset_in_page(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Offsets inside their page of slots or positions."""
        return slots % self.page_size

    def pages_of_slots(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The page each slot lies in; slot -1 lies in page -1."""
        return slots // self.page_size
