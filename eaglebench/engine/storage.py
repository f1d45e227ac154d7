"""KV bookkeeping of requests: admit, grow, checkpoint, release.

The one place in the engine that moves pages between the free list, requests and the tree.
"""

from eaglebench.engine.config import EngineConfig
from eaglebench.engine.request import EngineRequest
from eaglebench.errors import InvariantError
from eaglebench.kv.audit import OwnedView
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.pages import PageAllocator
from eaglebench.kv.preallocation import Demand
from eaglebench.kv.slots import SlotAllocator


class KVStorage:
    """Pages, slots and the prefix cache of one engine."""

    def __init__(self, config: EngineConfig) -> None:
        knobs = config.knobs
        self.policy = config.policy
        self.context_length = config.context_length
        self.geometry = PageGeometry(knobs.page_size)
        self.pages = PageAllocator(config.num_pages)
        self.slots = SlotAllocator(
            self.pages, self.geometry, knobs.preallocation, knobs.preallocate_tokens
        )
        self.cache = self.policy.make_cache(self.geometry, self.pages)
        self._num_admissions = 0

    def attach(self, request: EngineRequest) -> None:
        """Give a waiting request a table that starts with its longest cached prefix, locked."""
        self._num_admissions += 1
        request.namespace = self.policy.namespace(self._num_admissions)
        key = self.policy.make_key(request.known_tokens, request.namespace)
        hit = self.cache.lookup(key, request.hit_cap)
        request.lock = self.cache.lock(hit)
        request.table = self.policy.make_table(self.geometry)
        request.table.append(hit.pages)
        request.tree_owned_slots = hit.num_slots
        request.num_written = hit.num_slots
        request.draft_valid_len = hit.num_slots

    def detach(self, request: EngineRequest) -> None:
        """Undo `attach` of a request that got no pages of its own, or free all it owns."""
        if request.lock is None:
            raise InvariantError(f"request {request.request_id} holds no lock to give back")
        returned = self.slots.release(request.held, request.tree_owned_slots)
        request.tally.pages_returned += returned
        self.cache.unlock(request.lock)
        request.drop_pages()

    def demand(self, request: EngineRequest, num_new: int, num_lookahead: int) -> Demand:
        """Slots for `num_new` tokens of this step and the proposal after it."""
        return Demand(
            num_computed=request.num_written,
            num_new=num_new,
            num_lookahead=self.policy.num_lookahead(num_lookahead),
            max_slots=self.context_length,
        )

    def try_reserve(self, request: EngineRequest, demand: Demand) -> bool:
        """Reserve the slots of a demand, evicting from the tree if need be."""
        shortage = self.slots.shortage(request.held, demand)
        if shortage > 0:
            request.tally.evictions += self.cache.evict(shortage)
        calls_before = self.pages.num_alloc_calls
        reservation = self.slots.reserve(request.held, demand)
        request.tally.alloc_calls += self.pages.num_alloc_calls - calls_before
        if reservation is None:
            return False
        request.tally.pages_allocated += len(reservation.pages)
        return True

    def can_ever_hold(self, num_slots: int) -> bool:
        """Whether an otherwise empty pool has room for `num_slots` slots of one request."""
        return self.geometry.pages_for(num_slots) <= self.pages.num_pages

    def checkpoint(self, request: EngineRequest) -> None:
        """Move whole pages whose content is settled from the request to the tree."""
        if request.lock is None:
            raise InvariantError(f"request {request.request_id} holds no lock to move")
        units = self.policy.cacheable_units(request.num_known, request.num_written)
        units = min(units, request.draft_valid_len)
        key = self.policy.make_key(request.known_tokens, request.namespace).head(units)
        request.tree_owned_slots, request.lock = self.cache.checkpoint(
            key=key,
            table=request.held,
            tree_owned_slots=request.tree_owned_slots,
            lock=request.lock,
        )

    def owned_view(self, request: EngineRequest) -> OwnedView:
        """What the audit needs to know of a running request."""
        return OwnedView(
            request_id=request.request_id,
            table=request.held,
            tree_owned_slots=request.tree_owned_slots,
            num_written=request.num_written,
            draft_valid_len=request.draft_valid_len,
            num_known_tokens=request.num_known,
        )
