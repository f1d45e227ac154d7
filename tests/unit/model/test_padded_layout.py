"""Padded batches: the same numbers as row by row, without the work of the longest row for all."""

from collections.abc import Sequence

import hypothesis.strategies as st
import numpy as np
import torch
from hypothesis import given, settings
from torch import Tensor

from eaglebench.kv.pool import KVPool
from eaglebench.model.attention import AttentionForm, make_attention
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.layout_row import LayoutRow, Tree
from eaglebench.model.padded_layout import MOST_PADDED, NOT_WORTH_A_GROUP, alike

CPU = torch.device("cpu")
NUM_HEADS, NUM_KV_HEADS, WIDTH = 6, 2, 4
TOLERANCE = 1e-12


def make_tree(generator: np.random.Generator, num_nodes: int, num_queries: int) -> Tree:
    """Random parents; the last nodes are the queries."""
    parents = [int(generator.integers(-1, node)) if node else -1 for node in range(num_nodes)]
    seen = np.eye(num_nodes, dtype=np.bool_)
    depths = np.zeros(num_nodes, dtype=np.int64)
    for node, parent in enumerate(parents):
        if parent >= 0:
            seen[node] |= seen[parent]
            depths[node] = depths[parent] + 1
    return Tree(seen[num_nodes - num_queries :], depths)


def make_rows(generator: np.random.Generator, shapes: Sequence[tuple[int, int]]) -> list[LayoutRow]:
    """Rows of (queries, context in front), every second one a tree."""
    free = generator.permutation(np.arange(1, 1 + sum(map(sum, shapes)))).astype(np.int64)
    rows = []
    for number, (count, front) in enumerate(shapes):
        slots, free = free[: front + count], free[front + count :]
        tree = None
        if number % 2:
            num_nodes = min(front + count, count + 3)
            tree = make_tree(generator, num_nodes, count)
        rows.append(LayoutRow(slots, count, tree))
    return rows


def attend(backend: str, rows: Sequence[LayoutRow], form: AttentionForm) -> Tensor:
    """[num_tokens, num_heads, head_dim] over a pool of random numbers."""
    generator = torch.Generator().manual_seed(0)
    num_slots = 1 + sum(len(row.slots) for row in rows)
    pool = KVPool(
        num_layers=1,
        num_slots=num_slots,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=WIDTH,
        dtype=torch.float64,
        device=CPU,
    )
    for tensor in [*pool.keys, *pool.values]:
        tensor[:, 1:] = torch.randn(tensor[:, 1:].shape, generator=generator, dtype=torch.float64)
    num_tokens = sum(row.num_queries for row in rows)
    query, key, value = (
        torch.randn((num_tokens, heads, WIDTH), generator=generator, dtype=torch.float64)
        for heads in (NUM_HEADS, NUM_KV_HEADS, NUM_KV_HEADS)
    )
    layout = make_layout(rows, device=CPU, backend=backend)
    return make_attention(backend)(query, key, value, pool.of_layer(0), layout, form)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 40)), min_size=1, max_size=6),
    st.sampled_from([None, 1, 3, 16]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 100),
)
def test_the_padded_batch_is_the_loop(
    shapes: list[tuple[int, int]],
    window: int | None,
    has_softcap: bool,  # drawn by hypothesis
    has_sinks: bool,
    seed: int,
) -> None:
    """Runs and trees, grouped heads, windows, soft caps and sinks, in float64."""
    generator = np.random.default_rng(seed)
    sinks = torch.from_numpy(generator.standard_normal(NUM_HEADS)) if has_sinks else None
    form = AttentionForm(
        scale=0.5, window=window, softcap=2.0 if has_softcap else None, sinks=sinks
    )
    rows = make_rows(generator, shapes)

    loop, padded = (attend(backend, rows, form) for backend in ("loop", "padded"))

    assert torch.isfinite(loop).all()
    torch.testing.assert_close(padded, loop, atol=TOLERANCE, rtol=0)


def test_several_groups_are_the_loop_too() -> None:
    """A long prompt beside short rows, in another order than that of the groups."""
    generator = np.random.default_rng(0)
    rows = make_rows(generator, [(3, 20), (400, 0), (1, 50), (300, 90), (2, 60)])
    form = AttentionForm(scale=0.5, window=30)

    assert len(alike(rows)) > 1
    loop, padded = (attend(backend, rows, form) for backend in ("loop", "padded"))
    torch.testing.assert_close(padded, loop, atol=TOLERANCE, rtol=0)


def padded_work(rows: Sequence[LayoutRow]) -> tuple[int, int]:
    """Queries times keys of the padded groups, and how many groups there are."""
    groups = alike(rows)
    work = 0
    for group in groups:
        chosen = [rows[index] for index in group]
        longest = max(row.num_queries for row in chosen) * max(len(row.slots) for row in chosen)
        work += len(group) * longest
    return work, len(groups)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 500), st.integers(0, 3000)), min_size=1, max_size=64))
def test_padding_costs_little(shapes: list[tuple[int, int]]) -> None:
    """Whatever the lengths: a quarter of the rows' own work, and less than a kernel's a group."""
    rows = [LayoutRow(np.zeros(front + count, dtype=np.int64), count) for count, front in shapes]

    work, num_groups = padded_work(rows)

    own = sum(row.num_queries * len(row.slots) for row in rows)
    assert sorted(index for group in alike(rows) for index in group) == list(range(len(rows)))
    assert own <= work <= MOST_PADDED * own + num_groups * NOT_WORTH_A_GROUP


def test_a_long_prompt_beside_short_rows_is_computed_by_itself() -> None:
    """One of 3,000 tokens and seven of a few were padded to eight of 3,000."""
    lengths = [3000, *range(60, 95, 5)]
    rows = [LayoutRow(np.zeros(length, dtype=np.int64), length) for length in lengths]

    work, num_groups = padded_work(rows)

    assert work < 1.01 * sum(length**2 for length in lengths)
    assert num_groups == 2
