"""What an arm changes about the engine, as one strategy object.

`EnginePolicy` is the correct engine with the bigram radix cache. A policy is passed in through
`EngineConfig`; the engine asks it at the few places where arms differ.
"""

import numpy as np
from numpy.typing import NDArray

from eaglebench.kv.cache import CacheSetup, PrefixCache, make_cache
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import BigramKey, PrefixKey
from eaglebench.kv.tables import BlockTable
from eaglebench.records.knobs import CACHE_ARMS


class EnginePolicy:
    """The correct engine: bigram keys, look-ahead slots, draft KV rewritten after verify."""

    name = "radix"
    wants_seam_guess = False
    """Whether the target's own guess at a chunk seam has to be computed."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name or self.name

    def make_cache(self, setup: CacheSetup) -> PrefixCache:
        """The prefix cache of this arm; what is no arm of caches has the radix cache."""
        return make_cache(self.name if self.name in CACHE_ARMS else "radix", setup)

    def make_table(self, geometry: PageGeometry) -> BlockTable:
        """An empty block table."""
        return BlockTable(geometry)

    def make_key(self, tokens: NDArray[np.int32], namespace: str | None) -> PrefixKey:
        """The key under which KV of `tokens` is found again."""
        return BigramKey(tokens, namespace)

    def cacheable_units(self, num_known_tokens: int, num_written_slots: int) -> int:
        """Leading slots whose content is settled by the known tokens."""
        return BigramKey.cacheable_units(num_known_tokens, num_written_slots)

    def namespace(self, admission: int) -> str | None:
        """Name space of the tree for the `admission`-th admission; None is the shared one."""
        return None

    def num_lookahead(self, num_proposals: int) -> int:
        """Slots to reserve past this step's tokens for the next proposal."""
        return num_proposals

    def first_slot_to_rewrite(
        self, *, first_new_slot: int, end: int, num_proposed_slots: int
    ) -> int:
        """First slot of [first_new_slot, end) whose draft KV is written from target features.

        `num_proposed_slots` of the leading slots hold draft KV that the proposal left there.
        """
        return first_new_slot

    def seam_successor(
        self, next_prompt_token: int, target_guess: int | None, last_prompt_token: int
    ) -> int:
        """The token that follows the last slot of a middle chunk."""
        return next_prompt_token


class ForceMissPolicy(EnginePolicy):
    """Everything runs, inserts included, but every admission has a name space of its own."""

    name = "force-miss"

    def namespace(self, admission: int) -> str | None:
        """A name nobody else has."""
        return f"admission-{admission}"


POLICIES: tuple[type[EnginePolicy], ...] = (ForceMissPolicy,)
"""Arms that change more of the engine than its cache; beside these, the faults."""
