"""KV bookkeeping of requests: admit, grow, checkpoint, release.

The one place in the engine that moves pages between the free list, requests and the tree.
"""

from eaglebench.engine.config import EngineConfig
from eaglebench.engine.pool_room import PoolRoom
from eaglebench.engine.request import EngineRequest
from eaglebench.errors import InvariantError
from eaglebench.kv.audit import OwnedView
from eaglebench.kv.cache import CacheSetup
from eaglebench.kv.pages import PageAllocator
from eaglebench.kv.preallocation import Demand
from eaglebench.kv.slots import SlotAllocator
from eaglebench.kv.window import PagePairAllocator, slots_in_front


class KVStorage:
    """Pages, slots and the prefix cache of one engine."""

    def __init__(self, config: EngineConfig, room: PoolRoom) -> None:
        knobs = config.knobs
        self.policy = config.policy
        self.room = room
        self.geometry = config.geometry
        self.window = config.window
        self.pages = _make_pages(config)
        self.slots = SlotAllocator(
            self.pages, self.geometry, knobs.preallocation, knobs.preallocate_tokens
        )
        self.cache = self.policy.make_cache(
            CacheSetup(self.geometry, self.pages, config.window, knobs.eviction_policy)
        )
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
            max_slots=self.room.max_slots,
        )

    def try_reserve(self, request: EngineRequest, demand: Demand) -> bool:
        """Reserve the slots of a demand, evicting from the tree if need be."""
        full, windows = self.slots.shortage(request.held, demand)
        if full or windows:
            request.tally.evictions += self.cache.evict(full, windows)
        calls_before = self.pages.num_alloc_calls
        taken = self.slots.reserve(request.held, demand)
        request.tally.alloc_calls += self.pages.num_alloc_calls - calls_before
        if taken is None:
            return False
        request.tally.pages_allocated += len(taken)
        return True

    def fits(self, request: EngineRequest, demand: Demand) -> bool:
        """Whether a demand could be met by free and evictable pages, a chunk at a time."""
        full, windows = self.slots.shortage(request.held, demand)
        if self.window is not None:
            wanted = self.geometry.pages_for(demand.num_slots) - request.held.num_pages
            spared = wanted - self.room.most_windows(demand.num_slots)
            windows = max(0, windows - max(0, spared))
        return (
            full <= self.cache.num_evictable_pages and windows <= self.cache.num_evictable_windows
        )

    def slide(self, request: EngineRequest) -> None:
        """Give back window pages that neither this request nor a hit at its end will look at.

        Measured in settled units where a tree will hold them, so that a later hit at the tree's end
        still finds its whole window; from the next slot where nothing is kept.
        """
        if self.window is None or request.lock is None:
            return
        end = request.num_written
        if self.cache.keeps_prefixes:
            end = self.geometry.floor(self._settled_units(request))
        frontier = self.geometry.page_of_slot(max(0, end - slots_in_front(self.window)))
        first_own = self.geometry.pages_for(request.tree_owned_slots)
        self.cache.unlock_windows(request.lock, max(0, first_own - frontier))
        passed = request.held.pages_between(max(first_own, request.num_slid_pages), frontier)
        if len(passed):
            self.pages.release_window(passed)
            request.num_slid_pages = frontier

    def checkpoint(self, request: EngineRequest) -> None:
        """Move whole pages whose content is settled from the request to the tree."""
        if request.lock is None:
            raise InvariantError(f"request {request.request_id} holds no lock to move")
        units = self._settled_units(request)
        key = self.policy.make_key(request.known_tokens, request.namespace).head(units)
        request.tree_owned_slots, request.lock = self.cache.checkpoint(
            key=key,
            table=request.held,
            tree_owned_slots=request.tree_owned_slots,
            lock=request.lock,
        )

    def check_idle(self, *, is_fresh: bool = False) -> None:
        """Check that nobody but the tree holds a page; a few sums, so it can be asked at any time.

        Args:
            is_fresh: the tree is to hold none either.

        Raises:
            InvariantError: pages are lost, or owned by somebody who is gone.
        """
        cache, pages = self.cache, self.pages
        in_tree = cache.num_evictable_pages + cache.num_protected_pages
        found = {"free": pages.num_free, "in the tree": in_tree}
        if pages.num_free + in_tree != pages.num_pages or cache.num_protected_pages:
            raise InvariantError(
                f"nobody runs, and {pages.num_pages} pages are {found}, {cache.num_protected_pages} "
                "of the latter locked: a page was leaked"
            )
        lost = pages.num_lost_windows(cache.num_evictable_windows)
        if lost:
            raise InvariantError(f"nobody runs, and {lost} pages of window layers were leaked")
        if is_fresh and in_tree:
            raise InvariantError(f"{in_tree} pages are in the tree after a reset; expected none")

    def owned_view(self, request: EngineRequest) -> OwnedView:
        """What the audit needs to know of a running request."""
        return OwnedView(
            request_id=request.request_id,
            table=request.held,
            tree_owned_slots=request.tree_owned_slots,
            num_written=request.num_written,
            draft_valid_len=request.draft_valid_len,
            num_known_tokens=request.num_known,
            window_start=(
                max(0, request.num_written - slots_in_front(self.window)) if self.window else None
            ),
        )

    # --- sizes ---------------------------------------------------------------------------------

    def _settled_units(self, request: EngineRequest) -> int:
        """Leading slots whose content can be handed to the tree."""
        units = self.policy.cacheable_units(request.num_known, request.num_written)
        return min(units, request.draft_valid_len)


def _make_pages(config: EngineConfig) -> PageAllocator:
    """Pages of one pool; or, with window layers, of two."""
    if config.window is None:
        return PageAllocator(config.num_pages)
    return PagePairAllocator(config.geometry, config.num_pages, config.num_window_pages)
