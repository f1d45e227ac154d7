"""What an engine is built from; checked once, never changed."""

from dataclasses import dataclass, field

from eaglebench.engine.policy import EnginePolicy
from eaglebench.errors import UsageError
from eaglebench.kv.geometry import PageGeometry
from eaglebench.records.faults import needs_chain
from eaglebench.records.knobs import WINDOW_OFF, EngineKnobs
from eaglebench.spec.shape import DraftShape


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
        if knobs.page_size > knobs.max_total_tokens:
            raise UsageError(
                f"page size {knobs.page_size} is larger than the KV pool of "
                f"{knobs.max_total_tokens} tokens",
                hint="raise --max-total-tokens or lower --page-size",
            )
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
        if knobs.num_steps:
            self._check_draft(DraftShape(knobs.num_steps, knobs.eagle_topk, knobs.num_draft_nodes))

    def _check_draft(self, shape: DraftShape) -> None:
        least = shape.num_levels if shape.is_chain else 1
        if not least <= shape.num_nodes <= shape.num_candidates:
            root = 1
            raise UsageError(
                f"{shape.num_levels} steps at top-k {shape.topk} need {least + root} to "
                f"{shape.num_candidates + root} draft tokens, got {shape.num_nodes + root}"
            )
        if needs_chain(self.policy.name) and not shape.is_chain:
            raise UsageError(
                f"the arm {self.policy.name} is a fault of chains", hint="--eagle-topk 1"
            )

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
