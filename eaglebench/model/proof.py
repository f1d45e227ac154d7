"""Is the target that we compute the model that its family computes? Tried on a few tokens at load.

The family's own forward gives the logits of two prompts before anything is replaced. Then the same
tokens go the engine's way: two rows in one forward, one of them in two chunks, in shuffled slots,
and once more with the first row at the end of the context beside the second at its start. Whatever
a family does that our way leaves out (a state between layers, a bias by position, a scale, a table
chosen by the longest row) comes out as other logits, and the target is refused by name.

Lengths that a few tokens don't reach are left to `survey.py` (windows) and `target_config.py` (tables).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from eaglebench.errors import UsageError
from eaglebench.foreign import foreign_code
from eaglebench.kv.pool import KVPool
from eaglebench.model.attention_layout import make_layout
from eaglebench.model.decoder import refusal, refuse
from eaglebench.model.layout_row import LayoutRow

if TYPE_CHECKING:
    from eaglebench.model.target import Target

LONG, SHORT, CHUNK = 11, 7, 5
"""Tokens of the two prompts, and of the first one's first chunk."""
_PRECISE = frozenset({torch.float32, torch.float64})
_WORST_ERROR = 1e-3
"""Of float32 and float64, in standard deviations of the logits: rounding leaves below 1e-4."""
_MOST_ROWS, _ROW_ERROR = 0.75, 0.2
"""Of half precision: the share of rows that have to agree (a router may flip), and how well."""


@dataclass(frozen=True, slots=True)
class OwnLogits:
    """What the family's own forward says.

    Attributes:
        long_ids: [LONG] int64.
        short_ids: [SHORT] int64.
        long: [LONG, vocab] logits of the long prompt from position 0.
        short: [SHORT, vocab] of the short one.
        shifted: [LONG, vocab] of the long prompt at the end of the context; None where the family's
            own forward can't be asked for positions.
    """

    long_ids: Tensor
    short_ids: Tensor
    long: Tensor
    short: Tensor
    shifted: Tensor | None


@torch.inference_mode()
def own_logits(model: PreTrainedModel, context_length: int) -> OwnLogits:
    """Ask the untouched model; what it is left with is its plain attention.

    Raises:
        UsageError: it can't compute anything itself.
    """
    generator = torch.Generator().manual_seed(0)
    embedding: Any = model.get_input_embeddings()
    count = LONG + SHORT
    drawn = torch.randint(0, embedding.weight.shape[0], (count,), generator=generator)
    ids = drawn.to(model.device)
    with foreign_code(lambda reason: refusal(model, f"its own forward fails: {reason}")):
        model.set_attn_implementation("eager")
        long, short = (_logits(model, each) for each in (ids[:LONG], ids[LONG:]))
    for logits in (long, short):
        if not bool(torch.isfinite(logits).all()):
            dtype = str(model.dtype).removeprefix("torch.")
            refuse(model, f"its own forward gives logits that are no finite numbers in {dtype}")
    return OwnLogits(ids[:LONG], ids[LONG:], long, short, _shifted(model, ids, context_length))


def _shifted(model: PreTrainedModel, ids: Tensor, context_length: int) -> Tensor | None:
    if context_length < LONG:
        return None
    positions = torch.arange(context_length - LONG, context_length, device=ids.device)
    try:
        with foreign_code(UsageError):
            return _logits(model, ids[:LONG], positions)
    except UsageError:
        return None


def _logits(model: PreTrainedModel, ids: Tensor, positions: Tensor | None = None) -> Tensor:
    more = {} if positions is None else {"position_ids": positions[None]}
    output: Any = model(input_ids=ids[None], use_cache=False, **more)
    logits: Tensor = output.logits
    return logits[0].clone()


@torch.inference_mode()
def prove(target: "Target", own: OwnLogits) -> None:
    """Hold the engine's way against the family's own.

    Raises:
        UsageError: they differ, and where.
    """
    probe = _Probe(target, own)
    chunked, beside = probe.in_chunks()
    _compare(target, own.long, chunked, "in chunks beside another row")
    _compare(target, own.short, beside, "beside another row")
    if target.context_length < LONG:
        return
    shifted, beside = probe.at_the_end()
    _compare(target, own.short, beside, "beside a row at the end of the context")
    if own.shifted is not None:
        _compare(target, own.shifted, shifted, "at the end of the context")


class _Probe:
    """The two prompts of an `OwnLogits`, computed by the target's own forward."""

    def __init__(self, target: "Target", own: OwnLogits) -> None:
        self.target, self.own = target, own
        order = np.random.default_rng(0).permutation(LONG + SHORT).astype(np.int64) + 1
        self.long_slots, self.short_slots = order[:LONG], order[LONG:]

    def in_chunks(self) -> tuple[Tensor, Tensor]:
        """Logits of both; the long one in two chunks, the short one beside its first."""
        pool, own = self._pool(), self.own
        rows = [LayoutRow(self.long_slots[:CHUNK], CHUNK), LayoutRow(self.short_slots, SHORT)]
        first = self._forward(pool, rows, [own.long_ids[:CHUNK], own.short_ids], [0, 0])
        rest = self._forward(
            pool, [LayoutRow(self.long_slots, LONG - CHUNK)], [own.long_ids[CHUNK:]], [CHUNK]
        )
        return torch.cat([first[:CHUNK], rest]), first[CHUNK:]

    def at_the_end(self) -> tuple[Tensor, Tensor]:
        """Logits of both, the long one at the last positions of the context."""
        rows = [LayoutRow(self.long_slots, LONG), LayoutRow(self.short_slots, SHORT)]
        start = self.target.context_length - LONG
        ids = [self.own.long_ids, self.own.short_ids]
        logits = self._forward(self._pool(), rows, ids, [start, 0])
        return logits[:LONG], logits[LONG:]

    def _pool(self) -> KVPool:
        return self.target.make_pool(LONG + SHORT + 1)

    def _forward(
        self, pool: KVPool, rows: Sequence[LayoutRow], ids: Sequence[Tensor], starts: Sequence[int]
    ) -> Tensor:
        target = self.target
        counts = [len(each) for each in ids]
        layout = make_layout(rows, device=target.device, backend=target.attention_backend)
        positions = [torch.arange(s, s + n) for s, n in zip(starts, counts, strict=True)]
        every = torch.arange(sum(counts), device=target.device)
        place = torch.cat(positions).to(target.device)
        with foreign_code(
            lambda reason: refusal(target.model, f"its paged forward fails: {reason}")
        ):
            return target.forward(torch.cat(list(ids)), place, layout, pool, every).logits


def _compare(target: "Target", own: Tensor, ours: Tensor, where: str) -> None:
    own, ours = own.double(), ours.double()
    if own.shape != ours.shape:
        refuse(target.model, f"its own logits are {tuple(own.shape)}, ours {tuple(ours.shape)}")
    deviation = own.std().clamp_min(torch.finfo(torch.float32).tiny)
    difference = own - ours
    if target.dtype in _PRECISE:
        error, allowed = float(difference.abs().max() / deviation), _WORST_ERROR
    else:
        rows = difference.square().mean(-1).sqrt() / deviation
        error, allowed = float(torch.quantile(rows, _MOST_ROWS)), _ROW_ERROR
    if not error <= allowed:
        refuse(
            target.model,
            f"the logits of its own forward and those of the paged one differ by {error:.2g} of "
            f"their deviation {where} (allowed is {allowed:g})",
        )
