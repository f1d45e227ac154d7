"""Ownership between requests and the tree."""

import numpy as np
import pytest

from eaglebench.errors import InvariantError
from eaglebench.kv.audit import OwnedView, audit
from eaglebench.kv.cache import CacheSetup, NoCache, PrefixHit, PrefixLock
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import BigramKey
from eaglebench.kv.pages import PageAllocator
from eaglebench.kv.radix_cache import RadixCache
from eaglebench.kv.tables import BlockTable

NUM_PAGES = 200


class Request:
    """What a running request holds, driven by hand."""

    def __init__(self, cache: RadixCache, tokens: list[int], hit_cap: int = 0) -> None:
        self.cache = cache
        self.tokens = tokens
        hit = cache.lookup(BigramKey(tokens), hit_cap)
        self.lock = cache.lock(hit)
        self.table = BlockTable(cache.geometry)
        self.table.append(hit.pages)
        self.tree_owned_slots = hit.num_slots
        self.num_written = hit.num_slots

    def write(self, num_slots: int) -> None:
        """Hold and write the first `num_slots` slots."""
        need = self.cache.geometry.pages_for(num_slots) - self.table.num_pages
        taken = self.cache.pages.allocate(max(need, 0))
        assert taken is not None
        self.table.append(taken)
        self.num_written = num_slots

    def checkpoint(self) -> None:
        """Hand over what is settled."""
        units = BigramKey.cacheable_units(len(self.tokens), self.num_written)
        self.tree_owned_slots, self.lock = self.cache.checkpoint(
            key=BigramKey(self.tokens).head(units),
            table=self.table,
            tree_owned_slots=self.tree_owned_slots,
            lock=self.lock,
        )

    def finish(self) -> int:
        """Checkpoint, free the tail and give the lock back; returns pages freed as tail."""
        self.checkpoint()
        tail = self.table.pages[self.cache.geometry.pages_for(self.tree_owned_slots) :]
        self.cache.pages.free(tail)
        self.cache.unlock(self.lock)
        return len(tail)

    def view(self, request_id: str = "r") -> OwnedView:
        """For the audit."""
        return OwnedView(
            request_id=request_id,
            table=self.table,
            tree_owned_slots=self.tree_owned_slots,
            num_written=self.num_written,
            draft_valid_len=min(self.num_written, max(len(self.tokens) - 1, 0)),
            num_known_tokens=len(self.tokens),
        )


def make_cache(page_size: int = 1) -> RadixCache:
    """An empty cache over a fresh pool."""
    return RadixCache(CacheSetup(PageGeometry(page_size), PageAllocator(NUM_PAGES)))


def check(cache: RadixCache, *requests: Request) -> None:
    """Audit the books."""
    views = [each.view(str(number)) for number, each in enumerate(requests)]
    audit(cache.pages, cache, cache.geometry, views)


def serve(cache: RadixCache, prompt: list[int], num_outputs: int) -> tuple[int, int]:
    """Run a request to its end: (slots in the tree, pages freed as tail)."""
    request = Request(cache, prompt)
    request.tokens = prompt + [1000 + each for each in range(num_outputs)]
    request.write(len(request.tokens) - 1)
    freed = request.finish()
    return request.tree_owned_slots, freed


@pytest.mark.parametrize(
    ("num_tokens", "hits"),
    [
        (2, (1, 0, 0, 0)),
        (3, (2, 2, 0, 0)),
        (5, (4, 4, 4, 0)),
        (16, (15, 14, 12, 0)),
        (17, (16, 16, 16, 16)),
        (18, (17, 16, 16, 16)),
        (33, (32, 32, 32, 32)),
        (34, (33, 32, 32, 32)),
        (48, (47, 46, 44, 32)),
        (49, (48, 48, 48, 48)),
    ],
)
def test_identical_resend(num_tokens: int, hits: tuple[int, ...]) -> None:
    """All L tokens are offered, capped at L - 1 slots, floored to the page."""
    prompt = list(range(num_tokens))
    for page_size, expected in zip((1, 2, 4, 16), hits, strict=True):
        cache = make_cache(page_size)
        serve(cache, prompt, 5)
        again = Request(cache, prompt, hit_cap=num_tokens - 1)
        assert again.tree_owned_slots == expected
        check(cache, again)


@pytest.mark.parametrize(
    ("num_prompt", "num_outputs", "page_size", "inserted", "tail_pages"),
    [
        (10, 3, 1, 12, 0),
        (10, 3, 2, 12, 0),
        (10, 3, 4, 12, 0),
        (10, 3, 16, 0, 1),
        (17, 2, 4, 16, 1),
        (64, 1, 16, 64, 0),
    ],
)
def test_what_a_finished_request_leaves(
    num_prompt: int, num_outputs: int, page_size: int, inserted: int, tail_pages: int
) -> None:
    """N known tokens and S = N - 1 written slots are S units; the rest of the last page is freed."""
    cache = make_cache(page_size)

    assert serve(cache, list(range(num_prompt)), num_outputs) == (inserted, tail_pages)
    check(cache)


@pytest.mark.parametrize(("page_size", "owned"), [(1, [64, 128, 149]), (16, [64, 128, 144])])
def test_chunks_of_a_long_prompt(page_size: int, owned: list[int]) -> None:
    """A middle chunk of 64 gives 64 units, since the next prompt token is known."""
    cache = make_cache(page_size)
    request = Request(cache, list(range(150)))
    seen = []
    for end in (64, 128, 150):
        request.write(end)
        request.checkpoint()
        check(cache, request)
        seen.append(request.tree_owned_slots)

    assert seen == owned


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_two_requests_compute_one_prefix(page_size: int) -> None:
    """The second's copy is freed once and its table names the tree's pages (mini-sglang#142)."""
    cache = make_cache(page_size)
    prompt = list(range(33))
    first, second = Request(cache, prompt), Request(cache, prompt)
    for request in (first, second):
        request.write(33)
    first.checkpoint()
    before = cache.pages.num_free
    second.checkpoint()

    shared = cache.geometry.pages_for(32)
    assert second.table.pages[:shared].tolist() == first.table.pages[:shared].tolist()
    assert cache.pages.num_free - before == shared
    check(cache, first, second)
    third = Request(cache, [7, 7, 7])
    third.write(3)
    check(cache, first, second, third)
    for request in (first, second, third):
        request.finish()
    check(cache)


def test_chunked_requests_in_step_with_each_other() -> None:
    """Frees batched with rewrites of the same row return each page once (sglang#34067)."""
    cache = make_cache(16)
    prompt = list(range(150))
    requests = [Request(cache, prompt), Request(cache, [*prompt[:100], *range(500, 550)])]
    for end in (40, 64, 100, 128, 150):
        for request in requests:
            request.write(end)
        for request in requests:
            request.checkpoint()
            check(cache, *requests)
    for request in requests:
        request.finish()

    cache.evict(NUM_PAGES)
    assert cache.pages.num_free == NUM_PAGES


def test_a_checkpoint_of_nothing_new_moves_nothing() -> None:
    """Fewer settled units than the tree owns: the same border and the same receipt."""
    cache = make_cache(4)
    request = Request(cache, list(range(10)))
    request.write(9)
    request.checkpoint()
    before = (request.tree_owned_slots, request.lock)
    request.checkpoint()

    assert (request.tree_owned_slots, request.lock) == before
    assert not request.lock.is_spent


def test_a_lost_prefix_is_found() -> None:
    """A request that claims tree-owned slots the tree lacks is a bug."""
    cache = make_cache()
    request = Request(cache, list(range(10)))
    request.write(9)
    request.tree_owned_slots = 4

    with pytest.raises(InvariantError, match="the tree lost pages"):
        request.checkpoint()


def test_a_lock_is_given_back_once() -> None:
    """Receipts are spent."""
    cache = make_cache()
    lock = Request(cache, [1, 2]).lock
    cache.unlock(lock)

    with pytest.raises(InvariantError, match="given back twice"):
        cache.unlock(lock)


def test_a_moved_lock_spends_the_old_receipt() -> None:
    """Only the receipt that checkpoint returns is good."""
    cache = make_cache()
    request = Request(cache, [1, 2, 3])
    old = request.lock
    request.write(2)
    request.checkpoint()

    with pytest.raises(InvariantError, match="given back twice"):
        cache.unlock(old)


def test_a_hit_is_stale_after_eviction() -> None:
    """Locking pages that are gone is an error, and so is a hit of another cache."""
    cache = make_cache()
    serve(cache, [1, 2, 3], 1)
    hit = cache.lookup(BigramKey([1, 2, 3]), 2)
    cache.evict(99)

    with pytest.raises(InvariantError, match="changed between a match and its use"):
        cache.lock(hit)
    with pytest.raises(InvariantError, match="another cache"):
        cache.lock(PrefixHit(0, np.empty(0, dtype=np.int32)))


def test_eviction_frees_unlocked_pages_only() -> None:
    """Least recently used first, counted in pages; what is locked stays."""
    cache = make_cache()
    for start in (0, 100, 200):
        serve(cache, list(range(start, start + 5)), 1)
    held = Request(cache, list(range(5)), hit_cap=4)

    assert (cache.num_evictable_pages, cache.num_protected_pages) == (11, 4)
    assert cache.evict(1) == 5
    assert cache.evict(99) == 6
    assert cache.num_evictable_pages == 0
    check(cache, held)


def test_no_cache_keeps_everything_with_the_request() -> None:
    """The same verbs, and nothing happens."""
    cache = NoCache(CacheSetup(PageGeometry(1), PageAllocator(1)))
    key = BigramKey([1, 2, 3])
    hit = cache.lookup(key, 2)
    lock = cache.lock(hit)
    table = BlockTable(PageGeometry(1))

    assert hit.num_slots == 0
    assert cache.checkpoint(key=key, table=table, tree_owned_slots=0, lock=lock) == (0, lock)
    assert (cache.evict(3), len(cache.owned_pages())) == (0, 0)
    cache.audit()
    cache.unlock(lock)
    with pytest.raises(InvariantError, match="given back twice"):
        cache.unlock(lock)
    assert PrefixLock(None).spend() is None
