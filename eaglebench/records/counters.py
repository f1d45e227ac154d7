"""The exact counts of one request, and their sums: declared here and nowhere else.

Identities that hold for one request where the terms were measured (checked by `tests` and by the
reader of run folders):

    output_tokens = prefill_sampled + emitted
    emitted       = accepted + bonus - overrun        (bonus = verify_steps)
    accepted      = sum(accepted_per_step)
    verify_steps  = len(accepted_per_step) = len(steps)
    prompt_tokens = cached_tokens + prefill_tokens_computed   (unless preempted or failed)

acceptance length   emitted / verify steps        (bonus counted, prefill's token not)
al_sglang           output tokens / verify steps  (bench_sglang_eagle.py, send_one)
al_vllm             1 + accepted before cutting / verify steps that carried drafts
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Exact counts; None is one that was not measured, which is not 0.

    Attributes:
        turns: requests these counts are of.
        prompt_tokens: tokens of the prompt.
        cached_tokens: prompt tokens whose KV came from the prefix cache.
        prefill_tokens_computed: prompt (and, after a preemption, known) tokens computed.
        output_tokens: tokens delivered.
        prefill_sampled: delivered tokens that prefill sampled (0 or 1).
        verify_steps: target forwards over drafts of this request.
        num_drafts: verify steps that carried at least one proposed token.
        drafted: proposed tokens.
        accepted: proposed tokens accepted, before cutting.
        bonus: tokens the target itself added, one a verify step.
        overrun: tokens of verify steps cut after a stop or a limit.
        draft_forwards: forwards of the head this request took part in.
        target_forwards: forwards of the target this request took part in.
        pages_allocated: pages taken from the free list.
        pages_returned: pages this request gave back itself (not those the tree took over).
        alloc_calls: times the free list was asked for pages.
        evictions: pages evicted from the tree to make room for this request.
        preemptions: times this request lost its pages and was queued again.
        resumed_tokens: known tokens whose KV came from the prefix cache when the request went on
            after a preemption, all times together.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    turns: int = 1
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int | None = None
    prefill_tokens_computed: int | None = None
    prefill_sampled: int | None = None
    verify_steps: int | None = None
    num_drafts: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    bonus: int | None = None
    overrun: int | None = None
    draft_forwards: int | None = None
    target_forwards: int | None = None
    pages_allocated: int | None = None
    pages_returned: int | None = None
    alloc_calls: int | None = None
    evictions: int | None = None
    preemptions: int | None = None
    resumed_tokens: int | None = None

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Every counter."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def total(cls, counters: Iterable["Counters"]) -> "Counters":
        """The sum; of a count that some of them lack it is not known."""
        every, sums = list(counters), dict[str, Any]()
        for name in cls.names():
            column = [getattr(each, name) for each in every]
            sums[name] = None if None in column else sum(column)
        return cls(**sums)

    def as_dict(self) -> dict[str, int | None]:
        """Every count by its name, and what verify steps delivered."""
        return {**{name: getattr(self, name) for name in self.names()}, "emitted": self.emitted}

    @property
    def emitted(self) -> int | None:
        """Tokens that verify steps delivered."""
        if self.accepted is None or self.bonus is None or self.overrun is None:
            return None
        return self.accepted + self.bonus - self.overrun

    @property
    def acceptance_length(self) -> float | None:
        """Tokens a verify step delivers."""
        return share(self.emitted, self.verify_steps)

    @property
    def al_sglang(self) -> float | None:
        """What SGLang's scripts print."""
        return share(self.output_tokens, self.verify_steps)

    @property
    def al_vllm(self) -> float | None:
        """What vLLM logs."""
        accepted = share(self.accepted, self.num_drafts)
        return None if accepted is None else 1 + accepted


def share(part: float | None, whole: float | None) -> float | None:
    """`part / whole`; None where one was not measured, or there is nothing to divide by."""
    return part / whole if part is not None and whole else None
