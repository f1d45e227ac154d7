"""Time the bookkeeping of long requests: `python benchmarks/long_requests.py`.

One interleaved run of what a step does besides computing: planning attention for all rows, and
looking for a stop among the new tokens. Beside it stands what both cost where they go through all
that has been written: every slot of a row copied and compared, every delivered token copied. Printed
are medians of CPU time in milliseconds, and how often the short way goes into the long one.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

from eaglebench.engine.stopping import StopRule, StopWatch
from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.tables import BlockTable
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow, table_row

CPU = torch.device("cpu")
NUM_NEW = 4
SEED = 0


def make_tables(num_requests: int, length: int, *, is_run: bool) -> list[BlockTable]:
    """Tables of pages that follow one another, or of pages in no order."""
    generator = np.random.default_rng(SEED)
    tables = []
    for number in range(num_requests):
        pages = np.arange(1 + number * length, 1 + (number + 1) * length, dtype=np.int32)
        table = BlockTable(PageGeometry(1))
        table.append(pages if is_run else generator.permutation(pages))
        tables.append(table)
    return tables


def plan_by_views(tables: Sequence[BlockTable], length: int) -> None:
    """A step's layout as the engine makes it."""
    make_layout([table_row(each, length, NUM_NEW) for each in tables], device=CPU, backend="loop")


def plan_by_copies(tables: Sequence[BlockTable], length: int) -> None:
    """The same layout over copied slots, looked through for runs and copied to the device."""
    rows = [LayoutRow(each.slots(0, length), NUM_NEW) for each in tables]
    make_layout(rows, device=CPU, backend="loop")
    np.concatenate([row.slots for row in rows])


def make_watches(num_requests: int, length: int) -> list[StopWatch]:
    """Watches that have seen all but the last tokens."""
    rule = StopRule(
        stop_token_ids=frozenset({-1}),
        stop_strings=(),
        max_output_tokens=10**9,
        max_known_tokens=10**9,
        decode=lambda _: "",
    )
    watches = [StopWatch(rule, 1) for _ in range(num_requests)]
    for watch in watches:
        watch.cut(range(length))
    return watches


def cut_by_watches(watches: Sequence[StopWatch]) -> None:
    """What the engine does with the tokens of a verify step."""
    for watch in watches:
        watch.cut([1] * NUM_NEW)


def cut_by_copies(outputs: Sequence[np.ndarray]) -> None:
    """The list of all delivered tokens, made anew for each request."""
    for each in outputs:
        each.tolist()


def time_ms(run: Callable[[], None]) -> float:
    """CPU milliseconds of one call."""
    started = time.process_time()
    run()
    return 1e3 * (time.process_time() - started)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--length", type=int, default=32768)
    parser.add_argument("--repeat", type=int, default=15)
    given = parser.parse_args()
    length = given.length
    runs = make_tables(given.requests, length, is_run=True)
    mixed = make_tables(given.requests, length, is_run=False)
    watches = make_watches(given.requests, length)
    outputs = [np.arange(length, dtype=np.int32) for _ in watches]
    ways: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
        "layout, pages in a run": (
            lambda: plan_by_views(runs, length),
            lambda: plan_by_copies(runs, length),
        ),
        "layout, pages in no order": (
            lambda: plan_by_views(mixed, length),
            lambda: plan_by_copies(mixed, length),
        ),
        "stops": (
            lambda: cut_by_watches(watches),
            lambda: cut_by_copies(outputs),
        ),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(given.repeat):
        for name, (short, long) in ways.items():
            times[name].append((time_ms(short), time_ms(long)))
    print(f"{given.requests} requests of {length} tokens, a step")
    for name, pairs in times.items():
        short_ms, long_ms = (statistics.median(each) for each in zip(*pairs, strict=True))
        print(f"{name:24} {short_ms:8.2f} ms, through everything {long_ms:8.2f} ms")
        print(f"{'':24} {long_ms / short_ms:8.1f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
