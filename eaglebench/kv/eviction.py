"""The order in which cached KV goes: one queue, used by the tree and by its windows.

lru    used longest ago
fifo   came in longest ago, however often it was used
lfu    hit least often; of those, used longest ago

What waits stands in the queue once, under the rank it had when it was put there. Ranks never fall,
so it is enough to look again when its turn comes: what has risen since is put back.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from eaglebench.records.knobs import EvictionPolicy

Item = TypeVar("Item")


@dataclass(slots=True)
class Use:
    """When something cached came in, was used last, and how often it was hit.

    Attributes:
        last_used: time of the last use; times are counts of uses, not a clock.
        born: time it came in; 0 while it is not there.
        hits: hits since then that a request went on from.
        is_queued: whether it waits in the queue.
    """

    last_used: int = 0
    born: int = 0
    hits: int = 0
    is_queued: bool = False

    def inherit(self, other: "Use") -> None:
        """Be as old and as much used as `other`: both were one."""
        self.last_used, self.born, self.hits = other.last_used, other.born, other.hits

    def leave(self) -> None:
        """Be gone: what comes back is new."""
        self.born = self.hits = 0


Rank = tuple[int, int]
RANKS: dict[EvictionPolicy, Callable[[Use], Rank]] = {
    "lru": lambda use: (use.last_used, 0),
    "fifo": lambda use: (use.born, 0),
    "lfu": lambda use: (use.hits, use.last_used),
}


class EvictionQueue(Generic[Item]):
    """What may go, lowest rank first; of equal ranks, who was put there first."""

    def __init__(self, policy: EvictionPolicy, use_of: Callable[[Item], Use]) -> None:
        self._rank = RANKS[policy]
        self._use_of = use_of
        self._now = 0
        self._heap: list[tuple[Rank, int, Item]] = []
        self._num_pushed = 0

    def tick(self) -> None:
        """Let time go on: what is touched from now on is younger than all before."""
        self._now += 1

    def touch(self, use: Use) -> None:
        """Note a use; the first one of what was not there is its birth."""
        use.last_used = self._now
        use.born = use.born or self._now

    def push(self, item: Item) -> None:
        """Let it wait, if it does not yet."""
        use = self._use_of(item)
        if use.is_queued:
            return
        use.is_queued = True
        self._num_pushed += 1
        heapq.heappush(self._heap, (self._rank(use), self._num_pushed, item))

    def pop(self, may_go: Callable[[Item], bool]) -> Item | None:
        """The next one to go; None when nobody waits. What may not go waits no longer."""
        while self._heap:
            rank, _, item = heapq.heappop(self._heap)
            use = self._use_of(item)
            use.is_queued = False
            if not may_go(item):
                continue
            if self._rank(use) == rank:
                return item
            self.push(item)
        return None
