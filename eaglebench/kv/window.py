"""Window pages: where the KV of sliding-window layers lives.

Window layers see the last `window` positions, the current one included, so their KV sits in a pool
of its own and is given back as the window moves on. A page of the full pool has at most one page of
the window pool:

    full page      1   2   3   4
    window page    -   -   5   2      pages 1 and 2 have lost theirs: tombstones, if the tree's

W1  A window page is free, or belongs to exactly one full page.
W2  A free full page has no window page.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eaglebench.errors import InvariantError
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.pages import PageAllocator

NO_PAGE = 0
"""The dummy page stands for none: it is never handed out."""
UNALLOCATED_SLOT = -1

WindowSlots = Callable[[NDArray[np.int64]], NDArray[np.int64]]
"""From slots of the full pool to those where window layers keep the same tokens."""


def slots_in_front(window: int) -> int:
    """Live slots a new token needs in front of it: all the window but the token itself."""
    current = 1
    return window - current


class PagePairAllocator(PageAllocator):
    """Pages of the full pool that come with pages of the window pool.

    `allocate` takes as many of both or nothing; `free` gives back a page and what is left of its
    window page; `release_window` gives back window pages alone.
    """

    def __init__(self, geometry: PageGeometry, num_pages: int, num_window_pages: int) -> None:
        super().__init__(num_pages)
        self.geometry = geometry
        self.window_pages = PageAllocator(num_window_pages)
        self._window_page = np.zeros(num_pages + 1, dtype=np.int32)

    # --- taking and giving back ---------------------------------------------------------------

    def missing(self, num_pages: int) -> tuple[int, int]:
        """Pages that the full pool and the window pool lack for so many; changes nothing."""
        full, _ = super().missing(num_pages)
        return full, self.window_pages.missing(num_pages)[0]

    def num_lost_windows(self, num_in_tree: int) -> int:
        """Window pages that are neither free nor among those `num_in_tree` of the tree."""
        return self.window_pages.num_pages - self.window_pages.num_free - num_in_tree

    @property
    def num_allocatable(self) -> int:
        """Pages that `allocate` could take."""
        return min(self.num_free, self.window_pages.num_free)

    def allocate(self, num_pages: int) -> NDArray[np.int32] | None:
        """Take pages of both pools, mapped to one another; None, and no change, if either lacks."""
        if num_pages > self.num_allocatable:
            return None
        pages = super().allocate(num_pages)
        windows = self.window_pages.allocate(num_pages)
        if pages is None or windows is None:
            raise InvariantError("a pool ran short of pages it had a moment ago")
        self._window_page[pages] = windows
        return pages

    def free(self, pages: NDArray[np.int32]) -> None:
        """Give pages back, and their window pages; nothing has changed if that is an error."""
        super().free(pages)
        self.release_window(pages)

    def release_window(self, pages: NDArray[np.int32]) -> int:
        """Give back the window pages of these pages, where they have one; returns how many."""
        windows = self._window_page[pages]
        held = windows[windows != NO_PAGE]
        if len(held):
            self.window_pages.free(held)
            self._window_page[pages] = NO_PAGE
        return len(held)

    def hand_over(self, giver: int, taker: int) -> None:
        """Give the window page of one page to another one that holds the same tokens.

        Raises:
            InvariantError: the giver has none, or the taker has one.
        """
        if self._window_page[giver] == NO_PAGE or self._window_page[taker] != NO_PAGE:
            raise InvariantError(f"page {giver} can't hand its window page to page {taker}")
        self._window_page[taker] = self._window_page[giver]
        self._window_page[giver] = NO_PAGE

    # --- looking ------------------------------------------------------------------------------

    def is_live(self, pages: NDArray[np.int32]) -> NDArray[np.bool_]:
        """[num_pages] bool: which pages have a window page."""
        live: NDArray[np.bool_] = self._window_page[pages] != NO_PAGE
        return live

    def window_slots(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """[n] int64: the window slot of each full slot; -1, which pools refuse, where it has none."""
        pages = self._window_page[self.geometry.pages_of_slots(slots)].astype(np.int64)
        mapped = pages * self.geometry.page_size + self.geometry.offset_in_page(slots)
        return np.where(pages == NO_PAGE, UNALLOCATED_SLOT, mapped)

    # --- holding still ------------------------------------------------------------------------

    @property
    def num_changes(self) -> int:
        """Calls so far that took pages of either pool or gave some back."""
        return super().num_changes + self.window_pages.num_changes

    # --- audit --------------------------------------------------------------------------------

    def audit(self) -> None:
        """Check both free lists, W1 and W2.

        Raises:
            InvariantError: one of them is broken.
        """
        super().audit()
        self.window_pages.audit()
        owners = np.zeros(self.window_pages.num_pages + 1, dtype=np.int64)
        held = self._window_page[self._window_page != NO_PAGE]
        np.add.at(owners, self.window_pages.free_pages(), 1)
        np.add.at(owners, held, 1)
        wrong = np.flatnonzero(owners[1:] != 1) + 1
        if len(wrong):
            page = int(wrong[0])
            raise InvariantError(f"W1: window page {page} has {int(owners[page])} owners")
        if self.is_live(self.free_pages()).any():
            raise InvariantError("W2: a free page still has a window page")
