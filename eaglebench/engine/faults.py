"""Known faults of public engines, as arms that can be switched on.

They exist so that the harness can show what each fix is worth and the gate can be tried against
the real thing. Output text stays right under every one of them (the target verifies everything);
only acceptance sinks. Nothing else in the engine mentions them.
"""

import numpy as np
from numpy.typing import NDArray

from eaglebench.engine.policy import EnginePolicy
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import PrefixKey, TokenKey
from eaglebench.kv.tables import BlockTable

_DUMMY_PAGE = 0


class UnigramFault(EnginePolicy):
    """Single-token keys over a shared draft pool (sglang#10846, #11231).

    At every branch point one slot's draft KV holds the donor's next token.
    """

    name = "unigram"

    def make_key(self, tokens: NDArray[np.int32], namespace: str | None) -> PrefixKey:
        """A key that ignores the token after the last slot."""
        return TokenKey(tokens, namespace)

    def cacheable_units(self, num_known_tokens: int, num_written_slots: int) -> int:
        """Every written slot counts as settled."""
        return TokenKey.cacheable_units(num_known_tokens, num_written_slots)


class NoLookaheadFault(EnginePolicy):
    """No slots for the proposal; what is not allocated reads as page 0 (vllm#16612).

    Proposals of all requests that cross their allocation write into one shared page.
    """

    name = "no-lookahead"

    def make_table(self, geometry: PageGeometry) -> BlockTable:
        """A table whose unallocated entries name page 0."""
        return BlockTable(geometry, unallocated_page=_DUMMY_PAGE)

    def num_lookahead(self, num_proposals: int) -> int:
        """Nothing is reserved."""
        return 0


class KvReuseFault(EnginePolicy):
    """Draft KV that the proposal left is kept after verify (vllm#14649)."""

    name = "kv-reuse"

    def first_slot_to_rewrite(
        self, *, first_new_slot: int, end: int, num_proposed_slots: int
    ) -> int:
        """Only slots that the proposal did not reach; the last one always."""
        last_slot = end - 1
        return min(first_new_slot + num_proposed_slots, last_slot)


class SeamGuessFault(EnginePolicy):
    """At a chunk seam the target's guess stands in for the next prompt token (sglang#26329)."""

    name = "seam-guess"
    wants_seam_guess = True

    def seam_successor(
        self, next_prompt_token: int, target_guess: int | None, last_prompt_token: int
    ) -> int:
        """The guess, right or wrong."""
        return next_prompt_token if target_guess is None else target_guess


class SeamLastFault(EnginePolicy):
    """At a chunk seam the prompt's last token stands in for the next one (vLLM 0.32.0, V1 runner)."""

    name = "seam-last"

    def seam_successor(
        self, next_prompt_token: int, target_guess: int | None, last_prompt_token: int
    ) -> int:
        """The last token that is known, wherever the chunk ends."""
        return last_prompt_token


FAULT_POLICIES: tuple[type[EnginePolicy], ...] = (
    UnigramFault,
    NoLookaheadFault,
    KvReuseFault,
    SeamGuessFault,
    SeamLastFault,
)
