"""What one step will do, decided before anything is computed. A planned step cannot fail."""

from dataclasses import dataclass, field

from eaglebench.engine.request import PENDING_ROOT, EngineRequest


@dataclass(frozen=True, slots=True)
class PrefillRow:
    """Compute prompt tokens (resumed: known tokens) [start, end) of a request."""

    request: EngineRequest
    start: int
    end: int

    @property
    def num_tokens(self) -> int:
        """Tokens this row adds to the batch."""
        return self.end - self.start

    @property
    def committed(self) -> range:
        """Numbers of slots that may be committed after this row."""
        return range(self.end, self.end + 1)

    @property
    def completes(self) -> bool:
        """Whether the request can decode after this row."""
        return self.end == self.request.prefill_end

    @property
    def samples(self) -> bool:
        """Whether the first output token is chosen at the end of this row."""
        return self.completes and not self.request.has_sampled


@dataclass(frozen=True, slots=True)
class VerifyRow:
    """Compute the pending root and the proposed tokens of a request."""

    request: EngineRequest

    @property
    def start(self) -> int:
        """Slot and position of the root."""
        return self.request.num_written

    @property
    def num_tokens(self) -> int:
        """Tokens this row adds to the batch."""
        return PENDING_ROOT + len(self.request.proposal.token_ids)

    @property
    def end(self) -> int:
        """One past the last slot this row writes."""
        return self.start + self.num_tokens

    @property
    def committed(self) -> range:
        """Numbers of slots that may be committed after this row: the root, then a path of nodes."""
        least = self.start + PENDING_ROOT
        deepest = int(self.request.proposal.depths().max())
        return range(least, least + deepest + 1)


Row = PrefillRow | VerifyRow


@dataclass(slots=True)
class StepPlan:
    """Rows of one step, verify rows first; requests that ended while planning stand apart."""

    verify: list[VerifyRow] = field(default_factory=list)
    prefill: list[PrefillRow] = field(default_factory=list)
    ended: list[EngineRequest] = field(default_factory=list)

    @property
    def rows(self) -> list[Row]:
        """All rows in the order they stand in the batch."""
        return [*self.verify, *self.prefill]

    def drop(self, request: EngineRequest) -> None:
        """Take a request out again (it was preempted for another one)."""
        self.verify = [row for row in self.verify if row.request is not request]
        self.prefill = [row for row in self.prefill if row.request is not request]
