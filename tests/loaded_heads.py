"""A head from its folder onto a target in one call."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eaglebench.model.heads.eagle import make_head
from eaglebench.model.heads.head import DraftHead
from eaglebench.model.heads.published import read_published
from eaglebench.model.target import Target


def load_head(
    path: Path | str,
    target: Target,
    *,
    algorithm: str | None = None,
    aux_layer_ids: Sequence[int] | None = None,
    draft_config: Mapping[str, Any] | None = None,
) -> DraftHead:
    """Read a folder and make the head, as a run does."""
    published = read_published(path, draft_config)
    return make_head(published, target, algorithm=algorithm, aux_layer_ids=aux_layer_ids)
