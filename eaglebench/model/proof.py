"""Is the target that we compute the model that its family computes? Tried on a few tokens at load.

The family's own forward gives the logits of two prompts before anything is replaced. Then the same
tokens go the engine's way: two rows in one forward, one of them in two chunks, in shuffled slots,
and once more with the first row at the end of the context beside the second at its start. Whatever
a family does that our way leaves out (a state between layers, a bias by position, a scale, a table
chosen by the longest row) comes out as other logits, and the target is refused by name.

Lengths that a few tokens don't reach are left to `survey.py` (windows) and `target_config.py` (tables).
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
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
    """Ask the untouched model, left with plain attention; a UsageError if it can't compute."""
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
    shifted = None
    if context_length >= LONG:
        positions = torch.arange(context_length - LONG, context_length, device=ids.device)
        with suppress(UsageError), foreign_code(UsageError):
            shifted = _logits(model, ids[:LONG], positions)
    return OwnLogits(ids[:LONG], ids[LONG:], long, short, shifted)


def _logits(model: PreTrainedModel, ids: Tensor, positions: Tensor | None = None) -> Tensor:
    more = {} if positions is None else {"position_ids": positions[None]}
    output: Any = model(input_ids=ids[None], use_cache=False, **more)
    logits: Tensor = output.logits
    return logits[0].clone()


@torch.inference_mode()
def prove(target: "Target", own: OwnLogits) -> None:
    """Hold the engine's way against the family's own; a UsageError says where they differ."""
    order = np.random.default_rng(0).permutation(LONG + SHORT).astype(np.int64) + 1
    slots, short = order[:LONG], _Part(order[LONG:], own.short_ids, 0)

    pool = target.make_pool(LONG + SHORT + 1)
    first = _forward(target, pool, _Part(slots[:CHUNK], own.long_ids[:CHUNK], 0), short)
    rest = _forward(target, pool, _Part(slots, own.long_ids[CHUNK:], CHUNK))
    chunked = torch.cat([first[:CHUNK], rest])
    _compare(target, own.long, chunked, "in chunks beside another row")
    _compare(target, own.short, first[CHUNK:], "beside another row")
    if target.context_length < LONG:
        return
    end = _Part(slots, own.long_ids, target.context_length - LONG)
    logits = _forward(target, target.make_pool(LONG + SHORT + 1), end, short)
    _compare(target, own.short, logits[LONG:], "beside a row at the end of the context")
    if own.shifted is not None:
        _compare(target, own.shifted, logits[:LONG], "at the end of the context")


class _Part(NamedTuple):
    """A row of a forward: its slots up to the last token, what is fed, and where that begins."""

    slots: NDArray[np.int64]
    ids: Tensor
    start: int


def _forward(target: "Target", pool: KVPool, *parts: _Part) -> Tensor:
    """Logits of all tokens fed, by the target's own forward."""
    rows = [LayoutRow(part.slots, len(part.ids)) for part in parts]
    layout = make_layout(rows, device=target.device, backend=target.attention_backend)
    ids = torch.cat([part.ids for part in parts])
    places = [torch.arange(part.start, part.start + len(part.ids)) for part in parts]
    every = torch.arange(len(ids), device=target.device)
    place = torch.cat(places).to(target.device)
    with foreign_code(lambda reason: refusal(target.model, f"its paged forward fails: {reason}")):
        return target.forward(ids, place, layout, pool, every).logits


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
