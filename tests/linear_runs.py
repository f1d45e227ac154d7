"""What the head says behind a path of drafted tokens, computed one token after another.

No tree, no mask, no batch, no pages: a cold pass over the known tokens, then a row a token. Whatever
a drafter does at many nodes at once can be held against it. A drafter that is looked at keeps the
trees it grew, or the chains.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from eaglebench.engine.engine import Engine
from eaglebench.engine.models import Models
from eaglebench.kv.pool import KVPool
from eaglebench.kv.tables import BlockTable
from eaglebench.model.attention_layout import AttentionLayout, make_layout
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.layout_row import LayoutRow
from eaglebench.spec.drafter import ExtendRow
from eaglebench.spec.tree import TreeGrowth
from eaglebench.spec.tree_drafter import TreeDrafter
from tests.engines import CPU, TINY_HEAD, hybrid_models, tiny_models
from tests.loaded_heads import load_head


class LinearRun:
    """The head behind one request's known tokens."""

    def __init__(self, models: Models, known_ids: Sequence[int], room: int = 16) -> None:
        assert models.head is not None
        self.head: DraftHead = models.head
        self._num_settled = len(known_ids) - 1  # the last known token has no successor yet
        self._room = room
        self._pool = self.head.make_pool(self._num_settled)
        aux = _features(models, known_ids[:-1])
        hidden = self._forward(known_ids[1:], self.head.fuse(aux), 0, self._pool, self._num_settled)
        self._last = hidden[-1:]

    def log_probs(self, path: Sequence[int]) -> Tensor:
        """[draft_vocab] float64 log-probabilities behind the pending root and these tokens."""
        return torch.log_softmax(self.logits(path).double(), dim=-1)

    def logits(self, path: Sequence[int]) -> Tensor:
        """[draft_vocab] logits behind the pending root and these tokens."""
        end = self._num_settled
        pool = self.head.make_pool(end + self._room)
        pool.keys[0][:, :end] = self._pool.keys[0]
        pool.values[0][:, :end] = self._pool.values[0]
        hidden = self._last
        for number, token in enumerate(path):
            hidden = self._forward([token], hidden, end + number, pool, 1)
        return self.head.logits(hidden)[0]

    def _forward(
        self, tokens: Sequence[int], features: Tensor, start: int, pool: KVPool, count: int
    ) -> Tensor:
        return self.head.forward(
            torch.tensor(list(tokens)),
            features,
            torch.arange(start, start + count),
            _causal(start + count, count, self.head.attention_backend),
            pool,
        )


def _causal(context: int, count: int, backend: str) -> AttentionLayout:
    rows = [LayoutRow(np.arange(context, dtype=np.int64), count)]
    return make_layout(rows, device=CPU, backend=backend)


def _features(models: Models, ids: Sequence[int]) -> Tensor:
    """Hidden states of the target that feed the head, from one dense forward."""
    assert models.head is not None
    count = len(ids)
    output = models.target.forward(
        torch.tensor(list(ids)),
        torch.arange(count),
        _causal(count, count, models.target.attention_backend),
        models.target.make_pool(count),
        torch.arange(0),
        aux_layer_ids=models.head.aux_layer_ids,
    )
    assert output.aux is not None
    return output.aux


@dataclass(frozen=True)
class Grown:
    """A tree with all its candidates, and the table of the request it was grown for."""

    table: BlockTable
    tree: TreeGrowth


class ObservedTreeDrafter(TreeDrafter):
    """Keeps every tree it grows."""

    def __init__(self, head: DraftHead, pool: KVPool, device: torch.device) -> None:
        super().__init__(head, pool, device)
        self.grown: list[Grown] = []

    def _grow(self, rows: Sequence[ExtendRow], hidden: Tensor) -> list[TreeGrowth]:
        trees = super()._grow(rows, hidden)
        self.grown += [Grown(row.table, tree) for row, tree in zip(rows, trees, strict=True)]
        return trees


def observe_trees(engine: Engine) -> ObservedTreeDrafter:
    """Look at the trees an engine grows from now on."""
    drafter = engine.runner.drafter
    assert isinstance(drafter, TreeDrafter)
    observed = ObservedTreeDrafter(drafter.head, drafter.pool, drafter.device)
    engine.runner.drafter = observed
    return observed


@cache
def windowed_models(
    head_window: int | None,
    target_window: int | None,
    backend: str,
    device: torch.device = CPU,
) -> Models:
    """The tiny pair in float64, head and target each with a window or without."""
    if target_window is None:
        target = tiny_models(torch.float64, backend, device).target
    else:
        target = hybrid_models(target_window, backend, device).target
    with TemporaryDirectory() as folder:
        path = Path(folder) / "head"
        shutil.copytree(TINY_HEAD, path)
        config = json.loads((path / "config.json").read_text())
        if head_window is not None:
            config |= {"layer_types": ["sliding_attention"], "sliding_window": head_window}
        (path / "config.json").write_text(json.dumps(config))
        return Models(target, load_head(path, target))
