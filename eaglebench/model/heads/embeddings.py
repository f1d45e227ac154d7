"""Embeddings that a head brings, and how like those of its target they are.

They win over the target's, because a head may be of another width or have trained its own. A copy
is like the target's up to its rounding; noise, or those of another model, are not, and drafts from
them are worth nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from torch import Tensor

UNLIKE = 0.9
"""Mean cosine below which embeddings are hardly those of one model: fine-tuned ones stay above it,
rows of noise are near 0."""
_BLOCKS, _ROWS = 8, 512
_NAMES = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "tok_embeddings.weight")


@dataclass(frozen=True, slots=True)
class Likeness:
    """How like two tables of embeddings are, over the same rows of both.

    Attributes:
        cosine: mean over rows.
        difference: length of the difference, as a share of the target's.
        rows: that were compared.
    """

    cosine: float
    difference: float
    rows: int

    def __str__(self) -> str:
        return (
            f"mean cosine {self.cosine:.4f} with the target's over {self.rows} rows, relative "
            f"difference {self.difference:.2%}"
        )


def compare(own: Tensor, target: Tensor) -> Likeness | None:
    """Compare [rows, width] with the target's; None where the widths differ."""
    if own.shape[1] != target.shape[1]:
        return None
    rows = min(len(own), len(target))
    return _likeness(_sample(rows, own.__getitem__), _sample(rows, target.__getitem__))


def compare_with_folder(own: Tensor, folder: Path) -> Likeness | None:
    """The same with the embeddings in a target's folder; None where none can be found there."""
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt") as file:
                name = next((name for name in file.keys() if name.endswith(_NAMES)), None)  # noqa: SIM118  # no mapping
                if name is None:
                    continue
                table = file.get_slice(name)
                height, width = table.get_shape()
                if width != own.shape[1]:
                    return None
                rows = min(len(own), height)
                theirs = _sample(rows, table.__getitem__)
        except (OSError, SafetensorError, ValueError):
            continue
        return _likeness(_sample(rows, own.__getitem__), theirs)
    return None


def describe(likeness: Likeness | None) -> str:
    """What is known of embeddings that a head brings."""
    known = "; not compared with the target's" if likeness is None else f": {likeness}"
    return f"the head's own{known}"


def doubt(likeness: Likeness | None) -> str | None:
    """A warning where they are unlike."""
    if likeness is None or likeness.cosine >= UNLIKE:
        return None
    return (
        f"the head brings embeddings of its own, which are used, and they are unlike its target's "
        f"({likeness}): were they trained for another model, or never at all?"
    )


def _sample(rows: int, take: Callable[[slice], Tensor]) -> Tensor:
    """Blocks of rows from everywhere in the table."""
    starts = sorted({int(start) for start in torch.linspace(0, max(rows - _ROWS, 0), _BLOCKS)})
    ends = [*starts[1:], rows]
    parts = [
        take(slice(start, min(start + _ROWS, end, rows)))
        for start, end in zip(starts, ends, strict=True)
    ]
    return torch.cat(parts).to("cpu", torch.float32)


def _likeness(own: Tensor, target: Tensor) -> Likeness:
    cosine = float(F.cosine_similarity(own, target, dim=-1).mean())
    difference = float((own - target).norm() / target.norm().clamp_min(1e-12))
    return Likeness(cosine, difference, len(own))
