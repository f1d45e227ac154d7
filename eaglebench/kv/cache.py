"""The contract of a prefix cache: all that the engine asks of one.

A cache decides which pages of ended and running requests are found again, and for how long. It owns
the pages it was given until it frees them; the engine owns a request's own. A policy is a class that
keeps this contract, in a file of its own, and a line in `records.knobs.CACHE_ARMS`.

    lookup -> lock -> checkpoint* -> unlock        for each request, in this order
                      unlock_windows*
    evict                                          at any time; what is locked stays
"""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from eaglebench.errors import InvariantError
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import PrefixKey
from eaglebench.kv.pages import NO_PAGES, PageAllocator
from eaglebench.kv.tables import BlockTable
from eaglebench.records.knobs import CACHE_ARMS, EvictionPolicy


@dataclass(frozen=True, slots=True)
class CacheSetup:
    """What a cache is made of.

    Attributes:
        geometry: slots and pages.
        pages: the free list it takes pages out of use for and gives them back to; with window
            layers a `PagePairAllocator`.
        window: positions that window layers see; None where there are none.
        eviction: what goes first.
    """

    geometry: PageGeometry
    pages: PageAllocator
    window: int | None = None
    eviction: EvictionPolicy = "lru"


@dataclass(frozen=True, slots=True)
class PrefixHit:
    """A cached prefix: `num_slots` slots in `pages`; good until the cache changes shape.

    `place` is the cache's own note of where it ends, if it needs one.
    """

    num_slots: int
    pages: NDArray[np.int32]
    place: object = None


@dataclass(slots=True)
class PrefixLock:
    """A receipt for a locked prefix; gives back exactly once.

    Attributes:
        place: the cache's own note of what is locked.
        window_pages: the pages at its end whose window pages are pinned as well.
        is_unused_hit: whether it is of a hit that nobody has gone on from yet.
        is_spent: whether it was given back.
    """

    place: object
    window_pages: NDArray[np.int32] = field(default_factory=lambda: NO_PAGES)
    is_unused_hit: bool = False
    is_spent: bool = False

    def spend(self) -> object:
        """Use the receipt up; returns its place.

        Raises:
            InvariantError: it was used before.
        """
        if self.is_spent:
            raise InvariantError("a prefix lock was given back twice")
        self.is_spent = True
        return self.place


class PrefixCache(Protocol):
    """Slots are counted from position 0 of a request; every number of slots is whole pages.

    Nothing here reads a clock or a random number: the same calls give the same answers.
    """

    @property
    def keeps_prefixes(self) -> bool:
        """Whether what a request leaves behind can be hit."""

    @property
    def num_evictable_pages(self) -> int:
        """Pages of the cache that nobody has locked; `evict` can free them all."""

    @property
    def num_evictable_windows(self) -> int:
        """Window pages of the cache that nobody has locked; 0 without window layers."""

    @property
    def num_protected_pages(self) -> int:
        """Pages of the cache that somebody has locked."""

    def lookup(self, key: PrefixKey, max_slots: int) -> PrefixHit:
        """The longest cached prefix of a key, at most `max_slots` slots.

        With window layers, the longest one after which the whole window is live.
        """

    def lock(self, hit: PrefixHit) -> PrefixLock:
        """Protect a hit from eviction until the receipt is given back.

        Raises:
            InvariantError: the hit is of another cache, or the cache changed since.
        """

    def unlock(self, lock: PrefixLock) -> None:
        """Give a receipt back.

        Raises:
            InvariantError: it was given back before.
        """

    def unlock_windows(self, lock: PrefixLock, num_kept: int) -> None:
        """Take the pins off all but the last `num_kept` window pages of a receipt."""

    def checkpoint(
        self, *, key: PrefixKey, table: BlockTable, tree_owned_slots: int, lock: PrefixLock
    ) -> tuple[int, PrefixLock]:
        """Take over settled pages of a request, few or none.

        The first one under a lock says that the hit was used: a request that waits for room asks
        again and again, and has hit nothing.

        Args:
            key: settled units from position 0 on; floored to the page here.
            table: the request's table; afterwards it names the cache's pages up to the new border.
            tree_owned_slots: slots at the front that the cache owns already.
            lock: receipt for those; spent if anything moved.

        Returns:
            The new number of cache-owned slots and the receipt that goes with it.
        """

    def evict(self, num_pages: int, num_windows: int = 0) -> int:
        """Free at least so many unlocked pages and window pages if there are as many.

        Returns how many pages and lone window pages were freed.
        """

    def owned_pages(self) -> NDArray[np.int32]:
        """[n] int32: all pages of the cache, from a walk."""

    def audit(self) -> None:
        """Check the cache's own invariants.

        Raises:
            InvariantError: one of them is broken; the message names it.
        """


class NoCache:
    """The same verbs for an engine without a prefix cache: everything stays with the request."""

    keeps_prefixes = False
    num_evictable_pages = 0
    num_evictable_windows = 0
    num_protected_pages = 0

    def __init__(self, setup: CacheSetup) -> None:
        pass

    def lookup(self, key: PrefixKey, max_slots: int) -> PrefixHit:
        """Nothing is cached."""
        return PrefixHit(0, NO_PAGES)

    def lock(self, hit: PrefixHit) -> PrefixLock:
        """A receipt for nothing."""
        return PrefixLock(None)

    def unlock(self, lock: PrefixLock) -> None:
        """Take the receipt back."""
        lock.spend()

    def unlock_windows(self, lock: PrefixLock, num_kept: int) -> None:
        """Nothing is pinned."""

    def checkpoint(
        self, *, key: PrefixKey, table: BlockTable, tree_owned_slots: int, lock: PrefixLock
    ) -> tuple[int, PrefixLock]:
        """Nothing moves."""
        return tree_owned_slots, lock

    def evict(self, num_pages: int, num_windows: int = 0) -> int:
        """There is nothing to evict."""
        return 0

    def owned_pages(self) -> NDArray[np.int32]:
        """No pages."""
        return NO_PAGES

    def audit(self) -> None:
        """There is nothing that could be wrong."""


def make_cache(arm: str, setup: CacheSetup) -> PrefixCache:
    """The cache of an arm (see `CACHE_ARMS`)."""
    module_name, _, class_name = CACHE_ARMS[arm].partition(":")
    return cast("PrefixCache", getattr(import_module(module_name), class_name)(setup))
