"""Time a long prompt beside short rows in padded batches: `python benchmarks/padding.py`.

One interleaved run of attention alone: a step of one long prompt and seven short rows, the same rows
each in a step of its own, and the step as one padded batch of all rows, which is what it costs
where rows of unlike length are padded to each other. Printed are medians of CPU time in milliseconds,
and how often the rows by themselves go into the others.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

import numpy as np
import torch

from eaglebench.kv.pool import KVPool
from eaglebench.model.attention import AttentionForm, make_attention
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow

CPU = torch.device("cpu")
NUM_HEADS, NUM_KV_HEADS, WIDTH = 9, 3, 64
FORM = AttentionForm(scale=WIDTH**-0.5)


def time_ms(pool: KVPool, steps: Sequence[Sequence[LayoutRow]]) -> float:
    """CPU milliseconds of attention over some steps."""
    attend = make_attention("padded")
    started = time.process_time()
    for rows in steps:
        num_tokens = sum(row.num_queries for row in rows)
        query = torch.randn((num_tokens, NUM_HEADS, WIDTH))
        key = torch.randn((num_tokens, NUM_KV_HEADS, WIDTH))
        layout = make_layout(rows, device=CPU, backend="padded")
        attend(query, key, key, pool.of_layer(0), layout, FORM)
    return 1e3 * (time.process_time() - started)


def make_rows(lengths: Sequence[int]) -> list[LayoutRow]:
    """Whole prompts behind one another in the pool."""
    starts = np.cumsum([1, *lengths])
    return [
        LayoutRow(np.arange(start, start + length, dtype=np.int64), length)
        for start, length in zip(starts, lengths, strict=False)
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", type=int, default=1500)
    parser.add_argument("--short", type=int, default=60)
    parser.add_argument("--num-short", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lengths = [options.long, *[options.short] * options.num_short]
    rows = make_rows(lengths)
    pool = KVPool(
        num_layers=1,
        num_slots=1 + options.long * len(rows),
        num_kv_heads=NUM_KV_HEADS,
        head_dim=WIDTH,
        dtype=torch.float32,
        device=CPU,
    )
    kinds = {
        "by themselves": [[row] for row in rows],
        "in one step": [rows],
        "all as long": [make_rows([options.long] * len(rows))],
    }
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(options.rounds):
        for kind, steps in kinds.items():
            times[kind].append(time_ms(pool, steps))
    alone = statistics.median(times["by themselves"])
    for kind, each in times.items():
        median = statistics.median(each)
        sys.stdout.write(f"{kind:14} {median:8.1f} ms  {median / alone:5.2f}x\n")


if __name__ == "__main__":
    main()
