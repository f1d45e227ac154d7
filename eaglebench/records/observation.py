"""What was measured on one request: integers first, times beside them, ratios nowhere."""

from dataclasses import dataclass
from typing import ClassVar

from eaglebench.records.counters import Counters
from eaglebench.records.generation import FinishReason


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyStep:
    """One verify step of one request.

    Attributes:
        position: position of the root (the last known token) in the request.
        drafted_ids: proposed tokens, in order; empty for plain decoding.
        target_ids: the target's choice after the root and after every proposed token; of an engine
            outside only as far as they were accepted, and the one that follows.
        accepted: proposed tokens accepted, before cutting.
        emitted: tokens delivered, after cutting; the bonus included.
        target_gaps: difference of the two largest target logits, one per `target_ids`.
        draft_gaps: difference of the two largest draft logits, one per `drafted_ids`; in a tree
            the smallest lead of any choice that shaped it.
        parents: node (index into `drafted_ids`) that each one follows, -1 for the root; empty
            stands for a chain.
    """

    position: int
    drafted_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    accepted: int
    emitted: int
    target_gaps: tuple[float, ...]
    draft_gaps: tuple[float, ...]
    parents: tuple[int, ...] = ()

    @property
    def num_levels(self) -> int:
        """Most proposed tokens that could be accepted: the depth of the tree."""
        if not self.parents:
            return len(self.drafted_ids)
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent < 0 else depths[parent] + 1)
        return max(depths)

    @property
    def accepted_nodes(self) -> tuple[int, ...]:
        """Nodes that were accepted, from the root on: the walk that the target's choices take."""
        if not self.parents:
            return tuple(range(self.accepted))
        walk: list[int] = []
        for _ in range(self.accepted):
            node = walk[-1] if walk else -1
            chosen = self.target_ids[node + 1]
            children = enumerate(zip(self.parents, self.drafted_ids, strict=True))
            walk += [n for n, found in children if found == (node, chosen)][:1]
        return tuple(walk)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """Seconds one request spent waiting, in prefill, in decode, and in all."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    queue_s: float
    prefill_s: float
    decode_s: float
    total_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Where the wall time of a stretch of engine steps went, by kind of step.

    prefill: no row verified; decode: no row prefilled; mixed: both. `running_rows` is the sum over
    these steps of the requests that were running; None where it was not recorded.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    prefill_s: float
    mixed_s: float
    decode_s: float
    prefill_steps: int
    mixed_steps: int
    decode_steps: int
    running_rows: int | None = None

    @property
    def num_steps(self) -> int:
        """Steps of any kind."""
        return self.prefill_steps + self.mixed_steps + self.decode_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestObservation:
    """Everything known about one finished request.

    `accepted_per_step` is None where an engine tells totals alone; `steps` are empty then.
    `prefill_gap` is the top-2 gap of the target where prefill sampled the first token; None when
    nothing was sampled there. `error` is set when and only when `finish_reason` is `failed`.
    `seam_slots` are the last slots of chunks in the middle of the prefill, `seam_successors` the
    token after each that its draft KV was made with; None where that was not recorded.
    """

    request_id: str
    output_token_ids: tuple[int, ...]
    accepted_per_step: tuple[int, ...] | None
    steps: tuple[VerifyStep, ...] = ()
    counters: Counters
    times: RequestTimes
    finish_reason: FinishReason
    prefill_gap: float | None = None
    error: str | None = None
    seam_slots: tuple[int, ...] | None = None
    seam_successors: tuple[int, ...] | None = None

    @property
    def acceptance(self) -> tuple[int | None, ...]:
        """What was accepted: step by step where that was told, else in all, with the steps."""
        if self.accepted_per_step is not None:
            return self.accepted_per_step
        return (None, self.counters.accepted, self.counters.verify_steps)
