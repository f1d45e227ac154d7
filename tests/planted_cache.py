"""A cache policy of a stranger: pages in one dictionary, by all tokens up to their end; no tree."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from eaglebench.kv.cache import CacheSetup, PrefixHit, PrefixLock
from eaglebench.kv.keys import PrefixKey
from eaglebench.kv.tables import BlockTable


class DictionaryCache:
    """Keeps the contract of `kv/cache.py` with the least that does."""

    keeps_prefixes = True
    num_evictable_windows = 0

    def __init__(self, setup: CacheSetup) -> None:
        self.geometry = setup.geometry
        self.pages = setup.pages
        self.known: dict[PrefixKey, int] = {}
        self.locks: Counter[PrefixKey] = Counter()

    @property
    def num_evictable_pages(self) -> int:
        """Pages that nobody has locked."""
        return len(self.known) - self.num_protected_pages

    @property
    def num_protected_pages(self) -> int:
        """Pages that somebody has locked."""
        return sum(count > 0 for count in self.locks.values())

    def lookup(self, key: PrefixKey, max_slots: int) -> PrefixHit:
        """Page by page, as long as they are known."""
        found: list[PrefixKey] = []
        for name in self._names(key.head(self.geometry.floor(max_slots))):
            if name not in self.known:
                break
            found.append(name)
        pages = np.array([self.known[name] for name in found], dtype=np.int32)
        return PrefixHit(len(found) * self.geometry.page_size, pages, tuple(found))

    def lock(self, hit: PrefixHit) -> PrefixLock:
        """Count every page of the hit."""
        self.locks.update(hit.place)  # type: ignore[call-overload]  # our own tuple of names
        return PrefixLock(hit.place)

    def unlock(self, lock: PrefixLock) -> None:
        """Count them down."""
        self.locks.subtract(lock.spend())  # type: ignore[call-overload]  # our own tuple of names

    def unlock_windows(self, lock: PrefixLock, num_kept: int) -> None:
        """Knows no windows."""

    def checkpoint(
        self, *, key: PrefixKey, table: BlockTable, tree_owned_slots: int, lock: PrefixLock
    ) -> tuple[int, PrefixLock]:
        """New pages are taken over; a second copy is freed, and the table named the first."""
        settled = key.page_aligned(self.geometry)
        if settled.num_units <= tree_owned_slots:
            return tree_owned_slots, lock
        first = self.geometry.pages_for(tree_owned_slots)
        names = self._names(settled)
        for index, name in list(enumerate(names))[first:]:
            mine = table.pages_between(index, index + 1)
            kept = self.known.setdefault(name, int(mine[0]))
            if kept != mine[0]:
                self.pages.free(table.replace(index, np.array([kept], dtype=np.int32)))
        fresh = self.lock(PrefixHit(settled.num_units, table.pages, tuple(names)))
        self.unlock(lock)
        return settled.num_units, fresh

    def evict(self, num_pages: int, num_windows: int = 0) -> int:
        """Longest prefixes first, so that no page outlives those in front of it."""
        free = [name for name in self.known if not self.locks[name]]
        going = sorted(free, key=lambda name: -name.num_units)[:num_pages]
        self.pages.free(np.array([self.known.pop(name) for name in going], dtype=np.int32))
        return len(going)

    def owned_pages(self) -> NDArray[np.int32]:
        """All of them."""
        return np.array(list(self.known.values()), dtype=np.int32)

    def audit(self) -> None:
        """Nothing is counted, so nothing can be miscounted."""

    def _names(self, key: PrefixKey) -> list[PrefixKey]:
        size = self.geometry.page_size
        return [key.head(end) for end in range(size, key.num_units + 1, size)]
