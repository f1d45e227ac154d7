"""What the engine needs of a draft head, whatever its maths."""

from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from eaglebench.kv.pool import KVPool
from eaglebench.model.attention_layout import AttentionLayout
from eaglebench.model.heads.format import Algorithm, HeadFormat

TARGETS_EMBEDDINGS = "the target's embeddings"


@dataclass(slots=True, kw_only=True)
class LoadReport:
    """What was found in a folder, where each tensor came from, and what deserves a word.

    Attributes:
        form: whose names and fields the folder uses.
        sources: place to name in the file, or to what of the target is used instead.
        aux_layer_ids: states of the target that feed the head, as `Target.forward` takes them.
        aux_counting: where those ids come from and how they are counted, in words.
        embeddings: whose are used, and how like the target's a head's own are.
        warnings: what deserves a word.
    """

    form: HeadFormat
    sources: dict[str, str]
    aux_layer_ids: tuple[int, ...]
    aux_counting: str
    embeddings: str = TARGETS_EMBEDDINGS
    warnings: list[str] = field(default_factory=list)


class DraftHead(Protocol):
    """A loaded head.

    Slot i pairs token t_{i+1} with feature i at rotary position i. (speculators trains with
    positions from 1; rotary positions are relative, so a uniform shift changes nothing.)
    """

    @property
    def algorithm(self) -> Algorithm:
        """The kind of maths."""

    @property
    def report(self) -> LoadReport:
        """How it was loaded."""

    @property
    def attention_backend(self) -> str:
        """The attention it was loaded for; plans are made for it."""

    @property
    def aux_layer_ids(self) -> tuple[int, ...]:
        """States that the target has to deliver, as `Target.forward` takes them."""

    @property
    def draft_vocab_size(self) -> int:
        """Columns of its logits."""

    @property
    def max_positions(self) -> int | None:
        """Positions it was made for; nothing is proposed past them. None is no limit."""

    def make_pool(self, num_slots: int, fill: float = 0.0) -> KVPool:
        """A pool for the head's one layer, over the same slot ids as the target's."""

    def fuse(self, aux: Tensor) -> Tensor:
        """Features [num_tokens, hidden] from the target's [num_tokens, num_aux * hidden]."""

    def forward(
        self,
        token_ids: Tensor,
        features: Tensor,
        positions: Tensor,
        layout: AttentionLayout,
        pool: KVPool,
    ) -> Tensor:
        """Hidden states [num_tokens, hidden], the next level's features; writes draft KV.

        Args:
            token_ids: [num_tokens] int64, the token *after* each slot.
            features: [num_tokens, hidden] fused target features, or hidden states of a level.
            positions: [num_tokens] int64, position of each slot.
            layout: what is written and attended to.
            pool: the draft's pool.
        """

    def logits(self, hidden: Tensor) -> Tensor:
        """[num_rows, draft_vocab] logits of hidden states that `forward` returned."""

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """Target ids [n] of draft ids [n]."""
