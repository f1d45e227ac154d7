"""What one request brings to a forward."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eaglebench.kv.tables import BlockTable


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes among a request's last keys; the last of them are its queries.

    Attributes:
        seen: [num_queries, num_nodes] bool: which nodes each query sees, itself included;
            everything before the nodes is seen by all, as far as the layer's window reaches.
        depths: [num_nodes] int64 positions of the nodes, counted from the first of them: windows
            reach over positions, and siblings share one.
    """

    seen: NDArray[np.bool_]
    depths: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """One request's part of a forward.

    Attributes:
        slots: [context_len] int64 slots of everything it may look at; the last `num_queries` are
            the ones this forward writes.
        num_queries: tokens it computes.
        tree: where the last keys are nodes of a tree; None is a causal run.
        run_start: first slot where the slots are known to be one ascending run; None says nothing.
    """

    slots: NDArray[np.int64]
    num_queries: int
    tree: Tree | None = None
    run_start: int | None = None


def table_row(table: BlockTable, end: int, num_queries: int, tree: Tree | None = None) -> LayoutRow:
    """The row of a request that looks at positions [0, end) of its table; nothing is copied."""
    slots, run_start = table.leading(end)
    return LayoutRow(slots, num_queries, tree, run_start)
