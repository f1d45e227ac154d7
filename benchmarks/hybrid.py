"""Time a verify step of a hybrid target against the full-attention model it is made of.

    python benchmarks/hybrid.py

One interleaved run at equal context: a burst of forwards over three tokens of each, round after
round. Printed are medians in milliseconds and the hybrid's ratio to the full model.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from eaglebench.assets.cache import cache_root
from eaglebench.kv.window import slots_in_front
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import Target

CPU = torch.device("cpu")
ROWS, BURST = 3, 6


def make_verify(target: Target, context: int) -> Callable[[], None]:
    """A forward over three tokens behind a context, window layers in a pool of their own."""
    slots = np.arange(1, context + 1)
    rows = torch.arange(ROWS)
    pools = target.make_pool(context + 1)
    hybrid = target.make_hybrid_pool(context + 1, context + 1)

    def verify() -> None:
        layout = make_layout([LayoutRow(slots, ROWS)], device=CPU, backend="loop")
        if target.window is not None:
            seen = slots[-(slots_in_front(target.window) + ROWS) :]
            layout.window = make_layout([LayoutRow(seen, ROWS)], device=CPU, backend="loop")
        positions = rows + context - ROWS
        target.forward(rows, positions, layout, hybrid if target.window else pools, rows)

    return verify


def burst_ms(call: Callable[[], None]) -> float:
    """Milliseconds of one call, over several in a row."""
    started = time.perf_counter()
    for _ in range(BURST):
        call()
    return 1e3 * (time.perf_counter() - started) / BURST


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", type=Path, default=cache_root() / "smollm2-135m")
    parser.add_argument("--hybrid", type=Path, default=cache_root() / "smollm2-135m-swa")
    parser.add_argument("--context", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    targets = [
        Target.load(folder, dtype=torch.float32, device=CPU)
        for folder in (options.full, options.hybrid)
    ]
    for context in options.context:
        calls = [make_verify(target, context) for target in targets]
        times: list[list[float]] = [[burst_ms(call)][:0] for call in calls]
        for _ in range(options.rounds):
            for call, each in zip(calls, times, strict=True):
                each.append(burst_ms(call))
        full, hybrid = (statistics.median(each) for each in times)
        sys.stdout.write(
            f"context {context:5}  full {full:7.1f} ms  hybrid {hybrid:7.1f} ms  "
            f"{hybrid / full:5.2f}x\n"
        )


if __name__ == "__main__":
    main()
