"""What can be turned on the engine: one value of every axis of the matrix."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from eaglebench.records.draft_shape import draft_shape_problem, num_draft_nodes
from eaglebench.records.faults import FAULTS, needs_chain
from eaglebench.records.flags import flag_of

Preallocation = Literal["none", "lookahead-blocks", "covered"]
PREALLOCATIONS: tuple[Preallocation, ...] = ("none", "lookahead-blocks", "covered")

EvictionPolicy = Literal["lru", "fifo", "lfu"]
EVICTION_POLICIES: tuple[EvictionPolicy, ...] = ("lru", "fifo", "lfu")

AUTO = "auto"
"""Draft tokens that follow from steps and top-k; the same as saying nothing."""

CACHE_ARMS = {
    "radix": "eaglebench.kv.radix_cache:RadixCache",
    "force-miss": "eaglebench.kv.radix_cache:RadixCache",
    "no-cache": "eaglebench.kv.cache:NoCache",
}
"""Arms that differ in their cache, and the class that is it (see `kv/cache.py`), found by name: what
lists and checks arms loads no engine."""
BASELINE_ARM = "no-cache"
FAULT_ARMS = tuple(FAULTS)
ARMS = (*CACHE_ARMS, *FAULT_ARMS)
WINDOW_OFF = 0
"""A window that hides nothing."""
LEAST = {
    "page_size": 1,
    "chunked_prefill_size": 1,
    "sliding_window": WINDOW_OFF,
    "num_steps": 0,
    "eagle_topk": 1,
    "num_draft_tokens": 1,
    "preallocate_tokens": 1,
    "parallel": 1,
    "max_total_tokens": 1,
}
"""Smallest values of knobs that are numbers; None, where it stands for something, is another matter."""
AGAIN = ":again"
"""`radix:again` is `radix` once more beside itself, for measuring noise."""


def too_small(name: str, value: int, least: int, off: int | None = None) -> str | None:
    """Why a number can't be, in the words of its flag; None where it can."""
    if value >= least or value == off:
        return None
    also = "" if off is None else f", or {off} for off"
    return f"{flag_of(name)} {value}; expected at least {least}{also}"


def base_arm(name: str) -> str:
    """The arm that a name means: `radix` for `radix:again`."""
    return name.removesuffix(AGAIN)


@dataclass(frozen=True, slots=True)
class DraftKnobs:
    """The draft shape of a cell, as users spell it; see `EngineKnobs`."""

    num_steps: int
    eagle_topk: int
    num_draft_tokens: int

    @property
    def is_chain(self) -> bool:
        """One branch, or no draft at all."""
        return self.eagle_topk == 1

    @property
    def name(self) -> str:
        """Its part of a cell's name."""
        return f"topk{self.eagle_topk}-steps{self.num_steps}-draft{self.num_draft_tokens}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKnobs:
    """One cell of the matrix and one arm.

    Attributes:
        arm: how the prefix cache behaves, or which planted fault is on (`ARMS`).
        page_size: slots a page.
        chunked_prefill_size: most prompt tokens computed in one step; None is off.
        sliding_window: positions that window layers see instead of the model's own number, the
            current one included; `WINDOW_OFF` is all, None is the model's own.
        num_steps: levels of a draft; 0 is plain decoding.
        eagle_topk: branches a level; 1 is a chain.
        num_draft_tokens: tokens verified together, the root included (SGLang's meaning).
        preallocation: how many pages are taken ahead of need.
        preallocate_tokens: what the preallocation policies aim at.
        eviction_policy: which cached pages go first where room is short.
        parallel: most requests that run at the same time.
        max_total_tokens: slots in the KV pools.
        swa_full_tokens_ratio: slots of the window layers' pool, as a share of `max_total_tokens`.
        context_length: most tokens of one request; None is the model's own limit.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    arm: str = "radix"
    page_size: int = 1
    chunked_prefill_size: int | None = None
    sliding_window: int | None = None
    num_steps: int = 2
    eagle_topk: int = 1
    num_draft_tokens: int = 3
    preallocation: Preallocation = "none"
    preallocate_tokens: int = 64
    eviction_policy: EvictionPolicy = "lru"
    parallel: int = 1
    max_total_tokens: int = 16384
    swa_full_tokens_ratio: float = 0.8
    context_length: int | None = None

    @property
    def draft(self) -> DraftKnobs:
        """Steps, top-k and draft tokens."""
        return DraftKnobs(self.num_steps, self.eagle_topk, self.num_draft_tokens)

    @property
    def num_draft_nodes(self) -> int:
        """Proposed tokens verified together, without the root; 0 is plain decoding."""
        return num_draft_nodes(self.num_draft_tokens) if self.num_steps else 0

    def window_of(self, model_window: int | None) -> int | None:
        """Positions that window layers see in a model whose own window this is; None is all."""
        if self.sliding_window is None:
            return model_window
        return None if self.sliding_window == WINDOW_OFF else self.sliding_window

    def problem(self, arms: Iterable[str]) -> str | None:
        """Why these values can't be, or not together in some of these arms; None where they can."""
        for name, least in LEAST.items():
            value = getattr(self, name)
            small = None if value is None else too_small(name, value, least)
            if small is not None:
                return small
        if not 0 < self.swa_full_tokens_ratio <= 1:
            return (
                f"{flag_of('swa_full_tokens_ratio')} {self.swa_full_tokens_ratio:g}; expected more "
                "than 0 and at most 1"
            )
        shape = draft_shape_problem(self.num_steps, self.eagle_topk, self.num_draft_tokens)
        if shape is not None:
            return shape
        for arm in map(base_arm, arms):
            if self.eagle_topk > 1 and needs_chain(arm):
                return f"the arm {arm} is a fault of chains: --eagle-topk must be 1"
        if self.page_size > self.max_total_tokens:
            return (
                f"--page-size {self.page_size} is larger than the pool of "
                f"{self.max_total_tokens} tokens (--max-total-tokens)"
            )
        return None
