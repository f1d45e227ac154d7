"""What an engine is built from; checked once, never changed."""

from dataclasses import dataclass, field

from eaglebench.engine.policy import EnginePolicy
from eaglebench.errors import UsageError
from eaglebench.kv.geometry import PageGeometry
from eaglebench.records.knobs import WINDOW_OFF, EngineKnobs


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
        knobs = self.knobs
        PageGeometry(knobs.page_size)  # refuses a page size that can't be
        for name, value in (
            ("parallel", knobs.parallel),
            ("context length", self.context_length),
            ("max total tokens", knobs.max_total_tokens),
        ):
            if value < 1:
                raise UsageError(f"{name} is {value}; expected at least 1")
        if not 0 < knobs.swa_full_tokens_ratio <= 1:
            raise UsageError(
                f"swa-full-tokens-ratio is {knobs.swa_full_tokens_ratio:g}; expected more than 0 "
                "and at most 1"
            )
        if knobs.chunked_prefill_size is not None and knobs.chunked_prefill_size < 1:
            raise UsageError(
                f"chunk size is {knobs.chunked_prefill_size}; expected at least 1, or -1 for off"
            )
        if knobs.sliding_window is not None and knobs.sliding_window < WINDOW_OFF:
            raise UsageError(
                f"sliding window is {knobs.sliding_window}; expected at least 1, or {WINDOW_OFF} "
                "for off"
            )
        if knobs.eagle_topk < 1:
            raise UsageError(f"eagle-topk is {knobs.eagle_topk}; expected at least 1")
        problem = knobs.contradiction((self.policy.name,))
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
