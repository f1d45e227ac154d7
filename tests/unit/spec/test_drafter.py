"""Drawn drafts: which coin decides which token, and what is remembered of the draw."""

import numpy as np
import pytest
import torch
from torch import Tensor

from eaglebench.kv.geometry import PageGeometry
from eaglebench.kv.pool import KVPool
from eaglebench.kv.tables import BlockTable
from eaglebench.model.attention_layout import AttentionLayout
from eaglebench.spec.drafter import ChainDrafter, Drawing, ExtendRow
from eaglebench.spec.sampling import Sampler, coin
from eaglebench.spec.shape import DraftShape
from tests.counting_models import CountingHead

NUM_DRAFT_IDS, NUM_TARGET_IDS, SLOTS = 8, 20, 64
EVEN = tuple(range(1, 2 * NUM_DRAFT_IDS, 2))
"""Target ids of the draft ids."""


class UniformHead(CountingHead):
    """A head that finds all of its tokens equally likely."""

    draft_vocab_size = NUM_DRAFT_IDS

    def forward(
        self,
        token_ids: Tensor,
        features: Tensor,
        positions: Tensor,
        layout: AttentionLayout,
        pool: KVPool,
    ) -> Tensor:
        """As they come."""
        return features

    def logits(self, hidden: Tensor) -> Tensor:
        """All the same."""
        return torch.zeros((len(hidden), NUM_DRAFT_IDS), dtype=torch.float64)

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """Odd numbers."""
        return torch.tensor(EVEN)[draft_ids]


def make_row(end: int, levels: int, key: str | None) -> ExtendRow:
    """The last committed slot of a request, which drafts with the coins of `key`."""
    table = BlockTable(PageGeometry(1))
    table.append(np.arange(1, SLOTS, dtype=np.int32))
    return ExtendRow(
        table=table,
        start=end - 1,
        end=end,
        successor_ids=np.array([3]),
        feature_rows=np.array([0]),
        shape=DraftShape(levels, 1, levels),
        drawing=None if key is None else Drawing(Sampler(1.0), key),
    )


def make_drafter() -> ChainDrafter:
    """A drafter over the uniform head."""
    head = UniformHead()
    return ChainDrafter(head, head.make_pool(SLOTS), torch.device("cpu"))


def token_of(key: str, position: int) -> int:
    """What a coin draws from equally likely tokens."""
    return EVEN[int(NUM_DRAFT_IDS * coin(key, position, "draft"))]


@pytest.mark.parametrize(("end", "levels"), [(5, 1), (5, 4), (17, 3)])
def test_a_coin_belongs_to_the_position_of_its_token(end: int, levels: int) -> None:
    """The first drafted token follows the root, which stands at `end`; a batch changes nothing."""
    rows = [make_row(9, 2, "b"), make_row(end, levels, "a"), make_row(4, 3, None)]

    proposals = make_drafter().run(rows, torch.zeros((1, 1), dtype=torch.float64)).proposals

    first = end + 1
    assert proposals[1].token_ids == tuple(token_of("a", first + each) for each in range(levels))
    assert proposals[0].token_ids == (token_of("b", 10), token_of("b", 11))
    assert proposals[2].token_ids == (EVEN[0],) * 3


def test_the_odds_of_a_draw_are_kept() -> None:
    """In the target's vocabulary, 0 for what the head can't say; likeliest tokens have none."""
    rows = [make_row(5, 2, "a"), make_row(5, 2, None)]

    drawn, likeliest = make_drafter().run(rows, torch.zeros((1, 1), dtype=torch.float64)).proposals

    assert likeliest.odds is None
    assert drawn.odds is not None
    spread = drawn.odds.over_targets(NUM_TARGET_IDS)
    expected = [1 / NUM_DRAFT_IDS if token in EVEN else 0.0 for token in range(NUM_TARGET_IDS)]
    torch.testing.assert_close(spread, torch.tensor([expected, expected], dtype=torch.float64))
