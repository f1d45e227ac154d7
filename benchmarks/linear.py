"""Few-row products with the rows in front (`F.linear`) and with the weight in front (`linear`).

    python benchmarks/linear.py [--threads N]

Shapes are those of SmolLM2-135M; medians of interleaved rounds, as ratios.
"""

import argparse
import time
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor

from eaglebench.model.linear import linear

SHAPES = ((49152, 576), (3072, 576), (960, 576), (576, 1536))
ROWS = (1, 2, 3, 4, 8, 12, 16)
ROUNDS = 15
COPIES = 8
"""Weights a round, so that they come from memory and not from a cache."""


def seconds(weights: list[Tensor], rows: Tensor, *, is_ours: bool) -> float:
    """One pass over all weights."""
    product = linear if is_ours else F.linear
    started = time.perf_counter()
    for weight in weights:
        product(rows, weight)
    return time.perf_counter() - started


def main() -> None:
    """Print one line a shape and row count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    torch.set_num_threads(parser.parse_args().threads)
    for shape in SHAPES:
        weights = [torch.randn(shape) for _ in range(COPIES)]
        for count in ROWS:
            rows = torch.randn(count, shape[1])
            pairs = [
                (seconds(weights, rows, is_ours=False), seconds(weights, rows, is_ours=True))
                for _ in range(ROUNDS)
            ]
            plain, ours = (median(side) for side in zip(*pairs, strict=True))
            print(f"{shape} rows {count:2}: {plain * 1e3:7.2f} ms -> {ours * 1e3:7.2f} ms")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
