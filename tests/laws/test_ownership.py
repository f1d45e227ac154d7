"""Random histories over pages, slots, tables and tree, audited after every action.

Requests are simulated: nothing is computed, but each slot remembers which tokens its KV depends on
(all up to its own and the one after it), so that handing a slot to a request with other tokens is
seen as well as a page with two owners.
"""

from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from eaglebench.errors import EaglebenchError
from eaglebench.kv.audit import OwnedView, audit
from eaglebench.kv.cache import CacheSetup, PrefixLock
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import BigramKey, PrefixKey, TokenKey
from eaglebench.kv.pages import PageAllocator
from eaglebench.kv.preallocation import Demand
from eaglebench.kv.radix_cache import RadixCache
from eaglebench.kv.slots import SlotAllocator
from eaglebench.kv.tables import BlockTable
from eaglebench.records.knobs import PREALLOCATIONS, Preallocation

MAX_RUNNING = 4
MAX_TOKENS = 90
NUM_LOOKAHEAD = 3


class Running:
    """One simulated request."""

    def __init__(self, name: str, tokens: list[int], num_prompt: int, table: BlockTable) -> None:
        self.name = name
        self.tokens = tokens
        self.num_prompt = num_prompt
        self.table = table
        self.tree_owned_slots = 0
        self.num_written = 0
        self.lock: PrefixLock | None = None

    @property
    def settled(self) -> int:
        """Slots whose successor is known."""
        return min(self.num_written, max(len(self.tokens) - 1, 0))


class Ownership(RuleBasedStateMachine):
    """Lookup, lock, reserve, write, checkpoint, release, evict, abort, preempt."""

    make_key: Callable[[list[int]], PrefixKey] = staticmethod(BigramKey)
    make_cache: type[RadixCache] = RadixCache

    @initialize(
        page_size=st.sampled_from([1, 2, 4, 16]),
        policy=st.sampled_from(PREALLOCATIONS),
        pool=st.integers(100, 240),
    )
    def start(self, page_size: int, policy: Preallocation, pool: int) -> None:
        """An empty pool, small enough to run out."""
        self.geometry = PageGeometry(page_size)
        self.pages = PageAllocator(self.geometry.pages_for(pool))
        self.cache = type(self).make_cache(CacheSetup(self.geometry, self.pages))
        self.slots = SlotAllocator(self.pages, self.geometry, policy, 8)
        self.running: list[Running] = []
        self.preempted: list[Running] = []
        self.depends_on: dict[int, tuple[int, ...]] = {}
        self.written: dict[str, np.ndarray] = {}
        self.count = 0

    # --- actions ------------------------------------------------------------------------------

    @precondition(lambda self: len(self.running) < MAX_RUNNING)
    @rule(seed=st.integers(0, 3), length=st.integers(1, 60), branch=st.integers(0, 60))
    def arrive(self, seed: int, length: int, branch: int) -> None:
        """A prompt that follows one of few texts and may leave it somewhere."""
        tokens = [(seed % 2) * 100 + each for each in range(length)]
        tokens[branch:] = [token + 1000 * seed for token in tokens[branch:]]
        self.count += 1
        self.admit(tokens, len(tokens), hit_cap=len(tokens) - 1)

    @precondition(lambda self: self.preempted and len(self.running) < MAX_RUNNING)
    @rule()
    def resume(self) -> None:
        """The slot before the pending root is computed again."""
        old = self.preempted.pop(0)
        self.admit(old.tokens, old.num_prompt, hit_cap=max(len(old.tokens) - 2, 0))

    def admit(self, tokens: list[int], num_prompt: int, hit_cap: int) -> None:
        """Look the tokens up, lock the hit, start a table with it."""
        request = Running(f"r{self.count}-{len(tokens)}", tokens, num_prompt, self.new_table())
        if any(each.name == request.name for each in self.running):
            request.name += "'"
        hit = self.cache.lookup(self.make_key(tokens), hit_cap)
        request.lock = self.cache.lock(hit)
        request.table.append(hit.pages)
        request.tree_owned_slots = request.num_written = hit.num_slots
        assert hit.num_slots <= max(hit_cap, 0)
        self.running.append(request)

    def new_table(self) -> BlockTable:
        """An empty table."""
        return BlockTable(self.geometry)

    @precondition(lambda self: self.running)
    @rule(pick=st.integers(0, 9), length=st.integers(1, 40), num_accepted=st.integers(0, 3))
    def advance(self, pick: int, length: int, num_accepted: int) -> None:
        """A chunk of the prompt, or a verify step of a few tokens."""
        request = self.running[pick % len(self.running)]
        left = request.num_prompt - request.num_written
        num_new = min(length, left) if left > 0 else 1 + num_accepted
        if request.num_written + num_new > MAX_TOKENS or not self.reserve(request, num_new):
            return
        start, end = request.num_written, request.num_written + num_new
        if end >= request.num_prompt:
            known = max(len(request.tokens), end) + 1
            extra = range(len(request.tokens), known)
            request.tokens.extend(5000 + each % 7 for each in extra)
        request.num_written = end
        self.write(request, start, end)

    def reserve(self, request: Running, num_new: int) -> bool:
        """Reserve slots, evicting if need be."""
        demand = Demand(
            num_computed=request.num_written, num_new=num_new, num_lookahead=NUM_LOOKAHEAD
        )
        shortage = self.slots.shortage(request.table, demand)[0]
        if shortage:
            self.cache.evict(shortage)
        fits = self.slots.shortage(request.table, demand) == (0, 0)
        reservation = self.slots.reserve(request.table, demand)
        assert (reservation is not None) == fits
        return reservation is not None

    def write(self, request: Running, start: int, end: int) -> None:
        """Remember what the KV of each slot depends on."""
        slots = request.table.slots(start, end)
        self.written = {request.name: slots}
        for position, slot in zip(range(start, end), slots.tolist(), strict=True):
            self.depends_on[slot] = tuple(request.tokens[: position + 2])

    @precondition(lambda self: self.running)
    @rule(pick=st.integers(0, 9))
    def checkpoint(self, pick: int) -> None:
        """Hand settled pages over."""
        self.hand_over(self.running[pick % len(self.running)])

    def hand_over(self, request: Running) -> None:
        """Checkpoint one request."""
        assert request.lock is not None
        self.rewrite_seam(request)
        units = BigramKey.cacheable_units(len(request.tokens), request.num_written)
        request.tree_owned_slots, request.lock = self.cache.checkpoint(
            key=self.make_key(request.tokens[: units + 1]).head(units),
            table=request.table,
            tree_owned_slots=request.tree_owned_slots,
            lock=request.lock,
        )

    def rewrite_seam(self, request: Running) -> None:
        """The last written slot's successor is known by now: its dependency is complete."""
        start = max(request.tree_owned_slots, 0)
        slots = request.table.slots(start, request.settled).tolist()
        for position, slot in zip(range(start, request.settled), slots, strict=True):
            self.depends_on[slot] = tuple(request.tokens[: position + 2])

    @precondition(lambda self: self.running)
    @rule(pick=st.integers(0, 9), how=st.sampled_from(["finish", "abort", "preempt"]))
    def leave(self, pick: int, how: str) -> None:
        """Finish, abort or preempt: checkpoint, free the tail, give the lock back."""
        request = self.running.pop(pick % len(self.running))
        if how != "abort" or request.num_written % 2:
            self.hand_over(request)
        self.slots.release(request.table, request.tree_owned_slots)
        assert request.lock is not None
        self.cache.unlock(request.lock)
        if how == "preempt":
            self.preempted.append(request)

    @rule(num_pages=st.integers(1, 30))
    def evict(self, num_pages: int) -> None:
        """Free at least as many pages as asked, or all that nobody has locked."""
        evictable, free = self.cache.num_evictable_pages, self.pages.num_free
        freed = self.cache.evict(num_pages)

        assert freed >= min(num_pages, evictable)
        assert self.pages.num_free == free + freed

    # --- laws ---------------------------------------------------------------------------------

    @invariant()
    def books_are_sound(self) -> None:
        """Every page has one owner and every length is in order."""
        views = [
            OwnedView(
                request_id=each.name,
                table=each.table,
                tree_owned_slots=each.tree_owned_slots,
                num_written=each.num_written,
                draft_valid_len=each.settled,
                num_known_tokens=len(each.tokens),
            )
            for each in self.running
        ]
        audit(self.pages, self.cache, self.geometry, views, self.take_written())

    def take_written(self) -> dict[str, np.ndarray]:
        """Slots written since the last look."""
        written, self.written = self.written, {}
        return written

    @invariant()
    def borrowed_slots_fit_their_tokens(self) -> None:
        """KV borrowed from the tree depends on nothing but the borrower's own tokens."""
        for each in self.running:
            slots = each.table.slots(0, each.tree_owned_slots).tolist()
            for position, slot in enumerate(slots):
                assert self.depends_on[slot] == tuple(each.tokens[: position + 2])

    def teardown(self) -> None:
        """When everybody has left and the tree is flushed, the whole pool is free."""
        if not hasattr(self, "pages"):
            return
        while self.running:
            self.leave(0, "finish")
        self.cache.evict(self.cache.num_evictable_pages)
        assert self.pages.num_free == self.pages.num_pages


class KeepsDuplicates(RadixCache):
    """Planted bug: the tree's pages are adopted, the request's own are never freed."""

    def checkpoint(
        self, *, key: PrefixKey, table: BlockTable, tree_owned_slots: int, lock: PrefixLock
    ) -> tuple[int, PrefixLock]:
        """As the real one, without the free."""
        settled = key.page_aligned(self.geometry)
        if settled.num_units <= tree_owned_slots:
            return tree_owned_slots, lock
        first_own = self.geometry.pages_for(tree_owned_slots)
        offered = table.pages[: self.geometry.pages_for(settled.num_units)]
        _, end = self.tree.insert(settled, offered)
        table.replace(first_own, self.tree.pages_to(end, len(end.pages))[first_own:])
        self.tree.lock(end)
        self.unlock(lock)
        return settled.num_units, PrefixLock(end)


class FreesWithoutRewriting(RadixCache):
    """Planted bug: duplicates are freed while the row still names them."""

    def checkpoint(
        self, *, key: PrefixKey, table: BlockTable, tree_owned_slots: int, lock: PrefixLock
    ) -> tuple[int, PrefixLock]:
        """As the real one, then the old row again."""
        before = table.pages
        result = super().checkpoint(
            key=key, table=table, tree_owned_slots=tree_owned_slots, lock=lock
        )
        table.replace(0, before)
        return result


class ForgetsTheOldLock(RadixCache):
    """Planted bug: a checkpoint locks the new end and never gives the old lock back."""

    def unlock(self, lock: PrefixLock) -> None:
        """Take the receipt, leave the node locked."""
        lock.spend()


class UnigramOwnership(Ownership):
    """Planted bug: single-token keys over slots whose draft KV knows its successor."""

    make_key = staticmethod(TokenKey)


class DuplicateOwnership(Ownership):
    make_cache = KeepsDuplicates


class DanglingOwnership(Ownership):
    make_cache = FreesWithoutRewriting


class LockedOwnership(Ownership):
    make_cache = ForgetsTheOldLock


LAWS = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestOwnership = Ownership.TestCase
TestOwnership.settings = LAWS


@pytest.mark.parametrize(
    "planted", [UnigramOwnership, DuplicateOwnership, DanglingOwnership, LockedOwnership]
)
def test_planted_bugs_are_found(planted: type[Ownership]) -> None:
    """Each bug makes the audit or a law go red in a fixed set of histories."""
    hunting = settings(
        LAWS,
        max_examples=200,
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        phases=(Phase.generate,),
    )

    with pytest.raises((AssertionError, EaglebenchError)):
        run_state_machine_as_test(planted, settings=hunting)
