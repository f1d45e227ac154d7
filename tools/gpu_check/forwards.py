"""Time plain target forwards against a cached context, for both attention backends.

python -m tools.gpu_check.forwards FOLDER [--device cuda]

Prints the median of interleaved repetitions; the number of rows is requests x tokens.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import torch

from eaglebench.model.attention import BACKENDS
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow
from eaglebench.model.target import Target

CONTEXT = 512
SHAPES = ((1, 1), (1, 3), (1, 8), (8, 3), (32, 3))
"""Requests, tokens of each."""
WARM_UP = 3


def make_forward(target: Target, num_requests: int, num_tokens: int) -> Callable[[], None]:
    """One verify-shaped forward: every request adds `num_tokens` to a context of `CONTEXT`."""
    device = target.device
    pool = target.make_pool(1 + num_requests * CONTEXT)
    tables = [1 + number * CONTEXT + np.arange(CONTEXT) for number in range(num_requests)]
    rows = [LayoutRow(table.astype(np.int64), num_tokens) for table in tables]
    token_ids = torch.arange(num_requests * num_tokens, device=device)
    positions = torch.arange(CONTEXT - num_tokens, CONTEXT, device=device).repeat(num_requests)

    def forward() -> None:
        layout = make_layout(rows, device=device, backend=target.attention_backend)
        target.forward(token_ids, positions, layout, pool, token_ids)
        if device.type == "cuda":
            torch.cuda.synchronize()

    return forward


def time_forwards(
    folder: Path, device: torch.device, dtype: torch.dtype, repetitions: int
) -> dict[tuple[str, int, int], float]:
    """Median seconds by attention backend, requests and tokens."""
    targets = {
        name: Target.load(folder, dtype=dtype, device=device, attention_backend=name)
        for name in BACKENDS
    }
    forwards = {
        (name, *shape): make_forward(target, *shape)
        for name, target in targets.items()
        for shape in SHAPES
    }
    seconds: dict[tuple[str, int, int], list[float]] = {key: [] for key in forwards}
    for repetition in range(WARM_UP + repetitions):
        for key, forward in forwards.items():
            started = perf_counter()
            forward()
            if repetition >= WARM_UP:
                seconds[key].append(perf_counter() - started)
    return {key: median(values) for key, values in seconds.items()}


def main() -> None:
    """Read the command line and print one line a shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repetitions", type=int, default=30)
    options = parser.parse_args()
    device = torch.device(options.device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    timed = time_forwards(options.folder, device, dtype, options.repetitions)
    print(f"context {CONTEXT}, {dtype}, ms a forward (layout included), median")
    for num_requests, num_tokens in SHAPES:
        shown = ", ".join(
            f"{name} {1000 * timed[name, num_requests, num_tokens]:.2f}" for name in BACKENDS
        )
        print(f"  {num_requests} requests x {num_tokens} tokens: {shown}")


if __name__ == "__main__":
    main()
