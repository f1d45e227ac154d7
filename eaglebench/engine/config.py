"""What an engine is built from; checked once, never changed."""

from dataclasses import dataclass, field

from eaglebench.engine.policy import EnginePolicy
from eaglebench.errors import UsageError
from eaglebench.kv.geometry import PageGeometry
from eaglebench.records.knobs import EngineKnobs, too_small


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Knobs of the cell, the arm's policy, and what only tests turn.

    Attributes:
        knobs: one cell of the matrix.
        policy: what the arm changes.
        context_length: most tokens of one request, settled against the model's limit.
        window: positions that the target's window layers see; None where it has none.
        audit: check every bookkeeping law after every step.
        pool_fill: value the KV pools start with; tests use NaN.
    """

    knobs: EngineKnobs
    policy: EnginePolicy = field(default_factory=EnginePolicy)
    context_length: int
    window: int | None = None
    audit: bool = False
    pool_fill: float = 0.0

    def __post_init__(self) -> None:
        problem = self.knobs.problem((self.policy.name,)) or too_small(
            "context_length", self.context_length, 1
        )
        if problem is not None:
            raise UsageError(problem)

    @property
    def geometry(self) -> PageGeometry:
        """How slots are grouped into pages."""
        return PageGeometry(self.knobs.page_size)

    @property
    def num_pages(self) -> int:
        """Usable pages of the pools, the dummy page not counted."""
        return self.geometry.whole_pages(self.knobs.max_total_tokens)

    @property
    def num_window_pages(self) -> int:
        """Usable pages of the window layers' pool, the dummy page not counted."""
        return max(1, int(self.num_pages * self.knobs.swa_full_tokens_ratio))
