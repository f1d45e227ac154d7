"""A target that counts up and a head that knows it: real engines at no cost.

The token after t is t + 1, for the target and for the head, so every draft is accepted.
"""

import torch
from torch import Tensor

from eaglebench.engine.models import Models
from eaglebench.kv.pool import KVPool
from eaglebench.model.attention_layout import AttentionLayout
from eaglebench.model.heads.format import Algorithm, HeadFormat
from eaglebench.model.heads.head import LoadReport
from eaglebench.model.target import TargetOutput

VOCAB = 1024
CPU = torch.device("cpu")


def counted(token_ids: Tensor) -> Tensor:
    """[n, VOCAB] logits: 1 for the next number, 0 for all others."""
    return torch.nn.functional.one_hot((token_ids + 1) % VOCAB, VOCAB).double()


def tiny_pool(num_slots: int, fill: float) -> KVPool:
    """Room for one number a slot."""
    return KVPool(
        num_layers=1,
        num_slots=num_slots,
        num_kv_heads=1,
        head_dim=1,
        dtype=torch.float64,
        device=CPU,
        fill=fill,
    )


class CountingTarget:
    """What the engine asks of a target."""

    vocab_size = VOCAB
    attention_backend = "loop"
    device = CPU
    window = None

    def make_pool(self, num_slots: int, fill: float = 0.0) -> KVPool:
        """A pool that nobody writes."""
        return tiny_pool(num_slots, fill)

    def forward(
        self,
        token_ids: Tensor,
        positions: Tensor,
        layout: AttentionLayout,
        pool: KVPool,
        logit_rows: Tensor,
        aux_layer_ids: tuple[int, ...] = (),
    ) -> TargetOutput:
        """The next number after each token."""
        return TargetOutput(
            counted(token_ids.index_select(0, logit_rows)),
            token_ids[:, None].double(),
            torch.ones(len(token_ids), dtype=torch.bool),
        )


class CountingHead:
    """What the engine asks of a head; its hidden state is the token itself."""

    algorithm = Algorithm.EAGLE3
    report = LoadReport(form=HeadFormat.SGLANG, sources={}, aux_layer_ids=(), aux_counting="none")
    attention_backend = "loop"
    aux_layer_ids: tuple[int, ...] = ()
    draft_vocab_size = VOCAB
    max_positions = None

    def make_pool(self, num_slots: int, fill: float = 0.0) -> KVPool:
        """A pool that nobody writes."""
        return tiny_pool(num_slots, fill)

    def fuse(self, aux: Tensor) -> Tensor:
        """As they come."""
        return aux

    def forward(
        self,
        token_ids: Tensor,
        features: Tensor,
        positions: Tensor,
        layout: AttentionLayout,
        pool: KVPool,
    ) -> Tensor:
        """The tokens."""
        return token_ids[:, None].double()

    def logits(self, hidden: Tensor) -> Tensor:
        """The next number after each."""
        return counted(hidden[:, 0].long())

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """The same ids."""
        return draft_ids


def counting_models() -> Models:
    """The pair."""
    return Models(CountingTarget(), CountingHead())  # type: ignore[arg-type]  # what the engine asks
