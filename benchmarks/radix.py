"""Time the radix tree against SGLang's figures: `python benchmarks/radix.py`.

The reference figures are SGLang 0.5.23's `RadixCache` (bigram view over `array("q")`), measured
on a 2-core Xeon of the kind this was tuned on; they are constants here, since SGLang is not a
dependency. Ratios above 1 mean that this tree is faster. Like with like: a key is a view of tokens
that exist (as there), a match returns its page ids, an insert goes into an empty tree. `insert`
takes the array of page ids over, where SGLang's copies it; `handover` adds the copy that a
checkpoint makes of the block table, which in fresh memory is mostly the cost of its page faults.
Times are medians of the thread's CPU time, so that other work on a shared machine does not count.
"""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.keys import BigramKey
from eaglebench.kv.radix import RadixTree

VOCAB_SIZE = 49152
TRACE_REQUESTS, TRACE_TOKENS, TRACE_PREFIXES, TRACE_SHARED = 2000, 2200, 20, 2000


class Reference(NamedTuple):
    """SGLang 0.5.23, milliseconds, and how many times faster this tree has to be."""

    operation: str
    num_tokens: int
    page_size: int
    sglang_ms: float
    aim: float


REFERENCES = (
    Reference("insert", 1_024, 1, 0.060, 1.0),
    Reference("insert", 1_024, 16, 0.043, 1.0),
    Reference("handover", 1_024, 1, 0.060, 1.0),
    Reference("handover", 32_768, 1, 0.18, 1.0),
    Reference("handover", 1_000_000, 1, 8.1, 1.0),
    Reference("match", 1_024, 1, 0.048, 1.0),
    Reference("match", 1_024, 16, 0.039, 1.0),
    Reference("insert", 32_768, 1, 0.18, 5.0),
    Reference("insert", 32_768, 16, 0.21, 5.0),
    Reference("match", 32_768, 1, 0.28, 5.0),
    Reference("match", 32_768, 16, 0.49, 5.0),
    Reference("insert", 1_000_000, 1, 8.1, 5.0),
    Reference("insert", 1_000_000, 16, 6.4, 5.0),
    Reference("match", 1_000_000, 1, 21.0, 5.0),
    Reference("match", 1_000_000, 16, 29.0, 5.0),
    Reference("trace", TRACE_TOKENS, 1, 0.054, 2.0),
    Reference("trace", TRACE_TOKENS, 16, 0.141, 2.0),
)


def random_tokens(num_tokens: int, seed: int) -> NDArray[np.int32]:
    """Tokens drawn from the vocabulary of the default model, read-only."""
    return frozen(np.random.default_rng(seed).integers(0, VOCAB_SIZE, num_tokens, dtype=np.int32))


def frozen(tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same array, read-only, so that a key can be a view of it."""
    tokens.flags.writeable = False
    return tokens


def timed_ms(call: Callable[[], object]) -> float:
    """CPU time of one call in milliseconds."""
    start = time.thread_time()
    call()
    return (time.thread_time() - start) * 1e3


def table_for(num_tokens: int, geometry: PageGeometry) -> NDArray[np.int32]:
    """Page ids that a request could hold for the whole pages of a bigram key."""
    num_units = BigramKey.cacheable_units(num_tokens, num_tokens)
    return np.arange(1, geometry.pages_for(geometry.floor(num_units)) + 1, dtype=np.int32)


def insert(tree: RadixTree, tokens: NDArray[np.int32], pages: NDArray[np.int32]) -> None:
    """Make the key and hand `pages` over."""
    tree.insert(BigramKey(tokens).page_aligned(tree.geometry), pages)


def handover(tree: RadixTree, tokens: NDArray[np.int32], table: NDArray[np.int32]) -> None:
    """What a checkpoint does: insert a copy of what the table names."""
    insert(tree, tokens, table.copy())


def match(tree: RadixTree, tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """What a lookup does: make the key, match it, collect the page ids."""
    return tree.pages_of(tree.match(BigramKey(tokens)))


def insert_ms(
    verb: Callable[[RadixTree, NDArray[np.int32], NDArray[np.int32]], None],
    num_tokens: int,
    page_size: int,
    repeats: int,
) -> float:
    """Median time to insert a key into an empty tree."""
    geometry = PageGeometry(page_size)
    tokens = random_tokens(num_tokens, seed=0)
    table = table_for(num_tokens, geometry)
    return statistics.median(
        timed_ms(partial(verb, RadixTree(geometry), tokens, table)) for _ in range(repeats)
    )


def match_ms(num_tokens: int, page_size: int, repeats: int) -> float:
    """Median time to match the same tokens, page ids included."""
    geometry = PageGeometry(page_size)
    tree = RadixTree(geometry)
    insert(tree, random_tokens(num_tokens, seed=0), table_for(num_tokens, geometry))
    tokens = random_tokens(num_tokens, seed=0)
    return statistics.median(timed_ms(partial(match, tree, tokens)) for _ in range(repeats))


def trace_ms(page_size: int) -> float:
    """Mean time a request of matching its prompt and inserting it, over the whole trace."""
    geometry = PageGeometry(page_size)
    shared = [random_tokens(TRACE_SHARED, seed=each) for each in range(TRACE_PREFIXES)]
    num_own = TRACE_TOKENS - TRACE_SHARED
    prompts = [
        frozen(
            np.concatenate(
                [shared[each % TRACE_PREFIXES], random_tokens(num_own, seed=1000 + each)]
            )
        )
        for each in np.random.default_rng(1).permutation(TRACE_REQUESTS).tolist()
    ]
    table = table_for(TRACE_TOKENS, geometry)
    tree = RadixTree(geometry)

    def serve() -> None:
        for tokens in prompts:
            match(tree, tokens)
            handover(tree, tokens, table)

    return timed_ms(serve) / TRACE_REQUESTS


def measure(reference: Reference, repeats: int) -> float:
    """This tree's time for one row, in milliseconds."""
    if reference.operation == "trace":
        return statistics.median(trace_ms(reference.page_size) for _ in range(5))
    if reference.operation == "match":
        return match_ms(reference.num_tokens, reference.page_size, repeats)
    verb = insert if reference.operation == "insert" else handover
    return insert_ms(verb, reference.num_tokens, reference.page_size, repeats)


def main() -> int:
    """Print the table; exit status 1 when an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=31, help="timed calls a row (default 31)")
    repeats = parser.parse_args().repeats
    gc.disable()
    print(f"{'operation':<9} {'tokens':>9} {'page':>4} {'SGLang ms':>9} {'ms':>8} {'ratio':>6} aim")
    missed = 0
    for reference in REFERENCES:
        own_ms = measure(reference, repeats)
        ratio = reference.sglang_ms / own_ms
        missed += ratio < reference.aim
        print(
            f"{reference.operation:<9} {reference.num_tokens:>9} {reference.page_size:>4} "
            f"{reference.sglang_ms:>9.3f} {own_ms:>8.4f} {ratio:>6.1f} {reference.aim:g}"
            f"{'' if ratio >= reference.aim else '  missed'}"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
