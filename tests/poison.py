"""The tiny pair with numbers that are not finite: one token makes them, in the target or the head."""

from collections.abc import Sequence

import torch
from torch import Tensor

from eaglebench.engine.models import Models
from eaglebench.kv.pool import KVPool
from eaglebench.model.attention_layout import AttentionLayout
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.target import Target
from tests.engines import TINY, TINY_HEAD
from tests.loaded_heads import load_head


class PoisonedHead:
    """A head whose features are `value` where the token after the slot is `token_id`."""

    def __init__(self, head: DraftHead, token_id: int, value: float) -> None:
        self.head = head
        self.token_id = token_id
        self.value = value
        self.algorithm = head.algorithm
        self.report = head.report
        self.attention_backend = head.attention_backend
        self.aux_layer_ids = head.aux_layer_ids
        self.draft_vocab_size = head.draft_vocab_size
        self.max_positions = head.max_positions

    def make_pool(self, num_slots: int, fill: float = 0.0) -> KVPool:
        """As the real head."""
        return self.head.make_pool(num_slots, fill)

    def fuse(self, aux: Tensor) -> Tensor:
        """As the real head."""
        return self.head.fuse(aux)

    def forward(
        self,
        token_ids: Tensor,
        features: Tensor,
        positions: Tensor,
        layout: AttentionLayout,
        pool: KVPool,
    ) -> Tensor:
        """As the real head, from poisoned features: K and V of the slot are poisoned as well."""
        is_bad = (token_ids == self.token_id)[:, None]
        return self.head.forward(
            token_ids, torch.where(is_bad, self.value, features), positions, layout, pool
        )

    def logits(self, hidden: Tensor) -> Tensor:
        """As the real head."""
        return self.head.logits(hidden)

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """As the real head."""
        return self.head.target_ids(draft_ids)


def poisoned_models(
    whose: str, token_id: int, value: float, *, attention_backend: str = "loop"
) -> Models:
    """The tiny pair in float64; `token_id` gets `value` for its embedding or for its feature."""
    torch.set_num_threads(1)
    target = Target.load(
        TINY,
        dtype=torch.float64,
        device=torch.device("cpu"),
        attention_backend=attention_backend,
    )
    head = load_head(TINY_HEAD, target)
    if whose == "head":
        return Models(target, PoisonedHead(head, token_id, value))

    def poison(_module: torch.nn.Module, args: Sequence[Tensor], output: Tensor) -> Tensor:
        return torch.where((args[0] == token_id)[..., None], value, output)

    target.embedding.register_forward_hook(poison)
    return Models(target, head)
