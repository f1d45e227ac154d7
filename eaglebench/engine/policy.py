"""What an arm changes about the engine, as one strategy object.

`EnginePolicy` is the correct engine with the bigram radix cache. A policy is passed in through
`EngineConfig`; the engine asks it at the few places where arms differ.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import BigramKey, PrefixKey
from eaglebench.kv.pages import PageAllocator
from eaglebench.kv.prefix_cache import MakeResidency, NoPrefixCache, PrefixCache
from eaglebench.kv.tables import BlockTable
from eaglebench.records.knobs import EvictionPolicy


class EnginePolicy:
    """The correct engine: bigram keys, look-ahead slots, draft KV rewritten after verify."""

    name = "radix"
    wants_seam_guess = False
    """Whether the target's own guess at a chunk seam has to be computed."""

    def make_cache(
        self,
        geometry: PageGeometry,
        pages: PageAllocator,
        residency: MakeResidency | None = None,
        eviction: EvictionPolicy = "lru",
    ) -> PrefixCache | NoPrefixCache:
        """The prefix cache of this arm; with window layers it keeps their residency as well."""
        return PrefixCache(geometry, pages, residency, eviction)

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

    def seam_successor(self, next_prompt_token: int, target_guess: int | None) -> int:
        """The token that follows the last slot of a middle chunk."""
        return next_prompt_token


class ForceMissPolicy(EnginePolicy):
    """Everything runs, inserts included, but every admission has a name space of its own."""

    name = "force-miss"

    def namespace(self, admission: int) -> str | None:
        """A name nobody else has."""
        return f"admission-{admission}"


class NoCachePolicy(EnginePolicy):
    """No prefix cache at all."""

    name = "no-cache"

    def make_cache(
        self,
        geometry: PageGeometry,
        pages: PageAllocator,
        residency: MakeResidency | None = None,
        eviction: EvictionPolicy = "lru",
    ) -> PrefixCache | NoPrefixCache:
        """A cache that never hits and never keeps."""
        return NoPrefixCache()


def policies_by_name(*groups: Sequence[type[EnginePolicy]]) -> dict[str, type[EnginePolicy]]:
    """Policy classes by their arm name."""
    return {policy.name: policy for group in groups for policy in group}


CACHE_POLICIES: tuple[type[EnginePolicy], ...] = (EnginePolicy, ForceMissPolicy, NoCachePolicy)
