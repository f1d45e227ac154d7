"""How much logits move when the same rows are computed in another matrix shape.

Rows of a matrix product depend on the shape they are computed in, so two arms that chunk or batch
differently can part at a near-tie. The largest difference seen here, on the run's own prompts,
is what the near-tie threshold is made from.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from eaglebench.contracts.backend import NumericNoise
from eaglebench.engine.models import Models
from eaglebench.kv.pool import KVPool
from eaglebench.model.attention_plan import make_plan
from eaglebench.model.plan_row import PlanRow

SHAPES = (1, 2, 3, 5, 8, 16, 64)
"""Rows a forward, compared with the whole prompt at once."""
MAX_TOKENS = 192
"""Leading tokens of a prompt that are looked at."""
NUM_COMPARED = 24
"""Trailing tokens whose logits are compared."""


def measure_noise(models: Models, prompts: Sequence[Sequence[int]]) -> NumericNoise:
    """Largest absolute logit difference between whole and split forwards over `prompts`."""
    target = 0.0
    draft = 0.0
    for prompt in prompts:
        ids = list(prompt[:MAX_TOKENS])
        whole = _Pass(models, ids).run([len(ids)])
        for rows in SHAPES:
            split_from = max(0, len(ids) - NUM_COMPARED)
            steps = ([split_from] if split_from else []) + _pieces(len(ids) - split_from, rows)
            part = _Pass(models, ids).run(steps)
            count = min(NUM_COMPARED, len(ids))
            target = max(target, _difference(whole[0], part[0], count))
            draft = max(draft, _difference(whole[1], part[1], count))
    return NumericNoise(target=target, draft=draft)


def _pieces(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]


def _difference(whole: Tensor | None, part: Tensor | None, count: int) -> float:
    if whole is None or part is None:
        return 0.0
    return float((whole[-count:].double() - part[-count:].double()).abs().max().item())


class _Pass:
    """One pass over the tokens of a prompt in pieces, target and head."""

    def __init__(self, models: Models, ids: Sequence[int]) -> None:
        self.models = models
        self.ids = torch.tensor(list(ids), dtype=torch.int64, device=models.device)
        self.target_pool = models.target.make_pool(len(ids))
        self.draft_pool: KVPool | None = models.head.make_pool(len(ids)) if models.head else None

    def run(self, sizes: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """Logits of all tokens: [num_tokens, vocab] and [num_tokens - 1, draft_vocab]."""
        target_logits, draft_logits = [], []
        start = 0
        for size in sizes:
            target, draft = self._piece(start, start + size)
            target_logits.append(target)
            if draft is not None:
                draft_logits.append(draft)
            start += size
        return torch.cat(target_logits), torch.cat(draft_logits) if draft_logits else None

    def _piece(self, start: int, end: int) -> tuple[Tensor, Tensor | None]:
        head = self.models.head
        device = self.models.device
        positions = torch.arange(start, end, device=device)
        output = self.models.target.forward(
            self.ids[start:end],
            positions,
            make_plan(
                [PlanRow(np.arange(end, dtype=np.int64), end - start)],
                device=device,
                backend=self.models.target.attention_backend,
            ),
            self.target_pool,
            torch.arange(end - start, device=device),
            aux_layer_ids=head.aux_layer_ids if head else (),
        )
        settled = min(end, len(self.ids) - 1)  # the last token has no successor
        if head is None or self.draft_pool is None or output.aux is None or settled <= start:
            return output.logits, None
        hidden = head.forward(
            self.ids[start + 1 : settled + 1],
            head.fuse(output.aux[: settled - start]),
            positions[: settled - start],
            make_plan(
                [PlanRow(np.arange(settled, dtype=np.int64), settled - start)],
                device=device,
                backend=head.attention_backend,
            ),
            self.draft_pool,
        )
        return output.logits, head.logits(hidden)
