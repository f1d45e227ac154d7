"""Free pages: who is free, taking and giving back.

I1  Page 0, the dummy page, is never handed out and never free.
I2  Every other page is either free or taken; freeing a free page is an error.
I3  A refused request changes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from eaglebench.errors import InvariantError

DUMMY_PAGE = 0
NO_PAGES = np.empty(0, dtype=np.int32)


class PageAllocator:
    """A free list over pages 1 .. num_pages.

    The list is consumed from the front; freed pages wait in `returned` until the front runs out
    and are then sorted in, so that pages taken together are ascending runs where possible.
    """

    def __init__(self, num_pages: int) -> None:
        if num_pages < 1:
            raise InvariantError(f"a pool of {num_pages} pages holds nothing")
        self.num_pages = num_pages
        self.num_alloc_calls = 0
        self._free_list = _frozen(np.arange(1, num_pages + 1, dtype=np.int32))
        self._returned: list[NDArray[np.int32]] = []
        self._num_returned = 0
        self._is_free = np.ones(num_pages + 1, dtype=np.bool_)
        self._is_free[DUMMY_PAGE] = False
        self._changes = 0

    @property
    def num_free(self) -> int:
        """Pages that nobody owns."""
        return len(self._free_list) + self._num_returned

    @property
    def num_allocatable(self) -> int:
        """Pages that `allocate` could take."""
        return self.num_free

    def missing(self, num_pages: int) -> tuple[int, int]:
        """Pages that this pool, and the window pool where there is one, lack for so many."""
        return max(0, num_pages - self.num_free), 0

    def allocate(self, num_pages: int) -> NDArray[np.int32] | None:
        """Take pages, [num_pages] int32, read-only; None, and no change, when there are too few."""
        if num_pages < 0:
            raise InvariantError(f"can't allocate {num_pages} pages")
        if num_pages > self.num_free:
            return None
        self.num_alloc_calls += 1
        if num_pages > len(self._free_list):
            self._merge_returned()
        taken = self._free_list[:num_pages]
        self._free_list = self._free_list[num_pages:]
        self._is_free[taken] = False
        self._changes += 1
        return taken

    def free(self, pages: NDArray[np.int32]) -> None:
        """Give pages back.

        Raises:
            InvariantError: a page is free already, named twice, the dummy page or no page at all;
                nothing has changed then.
        """
        if not len(pages):
            return
        given = np.array(pages, dtype=np.int32)  # the caller's array may be a view of a row
        if given.min() <= DUMMY_PAGE or given.max() > self.num_pages:
            raise InvariantError(f"freed pages {_some(given)} outside 1 .. {self.num_pages}")
        if self._is_free[given].any():
            raise InvariantError(f"double free of pages {_some(given[self._is_free[given]])}")
        self._is_free[given] = True
        if _has_duplicates(given):
            self._is_free[given] = False
            raise InvariantError(f"pages freed twice in one call: {_some(given)}")
        self._returned.append(given)
        self._num_returned += len(given)
        self._changes += 1

    def is_free(self, page: int) -> bool:
        """Whether nobody owns a page."""
        return bool(self._is_free[page])

    def free_pages(self) -> NDArray[np.int32]:
        """All free pages, [num_free] int32."""
        return np.concatenate([self._free_list, *self._returned])

    def audit(self) -> None:
        """Check I1 and I2: the list and the flags name the same pages.

        Raises:
            InvariantError: they don't.
        """
        listed = np.sort(self.free_pages())
        if not np.array_equal(listed, np.flatnonzero(self._is_free)) or self.is_free(DUMMY_PAGE):
            raise InvariantError("I2: the free list and what counts as free differ")

    def _merge_returned(self) -> None:
        self._free_list = _frozen(np.sort(np.concatenate([self._free_list, *self._returned])))
        self._returned = []
        self._num_returned = 0

    # --- window layers, which share this pool -------------------------------------------------

    def is_live(self, pages: NDArray[np.int32]) -> NDArray[np.bool_]:
        """[num_pages] bool: which pages still hold the KV of window layers."""
        return np.ones(len(pages), dtype=np.bool_)

    def window_slots(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """[n] int64: where window layers keep the KV of each slot."""
        return slots

    def num_lost_windows(self, num_in_tree: int) -> int:
        """Window pages that are neither free nor among those `num_in_tree` of the tree."""
        return 0

    def release_window(self, pages: NDArray[np.int32]) -> int:
        """Give back what window layers alone hold of these pages; returns how many pages."""
        return 0

    # --- holding still ------------------------------------------------------------------------

    @property
    def num_changes(self) -> int:
        """Calls so far that took pages or gave some back."""
        return self._changes

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse that anybody takes or frees pages inside: a planned step has all it needs.

        Raises:
            InvariantError: somebody did.
        """
        before = self.num_changes
        yield
        if self.num_changes != before:
            raise InvariantError("pages were taken or freed in the middle of a step")


def _frozen(pages: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same array, read-only: nobody may write into what was handed out."""
    pages.flags.writeable = False
    return pages


def _has_duplicates(pages: NDArray[np.int32]) -> bool:
    if bool((pages[1:] > pages[:-1]).all()):  # the common case: an ascending run
        return False
    return len(np.unique(pages)) != len(pages)


def _some(pages: NDArray[np.int32]) -> str:
    shown = 8
    text = ", ".join(map(str, pages[:shown].tolist()))
    return text + (", ..." if len(pages) > shown else "")
